from django.http import QueryDict

from toolbench.lab.results.compare.query import CompareQuery


def test_compare_query_ignores_a_run_list_that_is_too_long() -> None:
    runs = ",".join(str(100_000 + number) for number in range(50))
    query = CompareQuery.from_query(QueryDict(f"a_run={runs}&b_run={'1,' * 600}1"))

    assert query.a == {"run": runs}
    assert query.ignored == ("b_run",)


def test_compare_query_accepts_published_row_only_as_a_side() -> None:
    query = CompareQuery.from_query(QueryDict("published=1&a_published=p0&b_published=p1"))

    assert query.both == {}
    assert query.ignored == ("published",)
    assert query.is_complete
