from django.http import QueryDict

from toolbench.lab.results.compare.query import CompareQuery


def test_a_long_list_of_runs_is_whole_or_named_as_unread_and_never_cut() -> None:
    runs = ",".join(str(100_000 + number) for number in range(50))
    query = CompareQuery.from_query(QueryDict(f"a_run={runs}&b_run={'1,' * 600}1"))

    assert query.a == {"run": runs}
    assert query.ignored == ("b_run",)
