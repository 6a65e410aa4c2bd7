from django.http import QueryDict

from toolbench.lab.results.compare.query import CompareQuery


def test_compare_query_ignores_a_list_of_runs_that_is_too_long() -> None:
    runs = ",".join(str(100_000 + number) for number in range(50))
    query = CompareQuery.from_query(QueryDict(f"a_run={runs}&b_run={'1,' * 600}1"))

    assert query.a == {"run": runs}
    assert query.ignored == ("b_run",)


def test_published_row_is_a_side_but_no_value_of_all_sides() -> None:
    query = CompareQuery.from_query(QueryDict("published=1&a_published=p0&b_published=p1"))

    assert query.both == {}
    assert query.ignored == ("published",)
    assert query.is_complete
