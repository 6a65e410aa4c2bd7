"""Query of the trial page."""

from django.http import QueryDict

from toolbench.lab.results.trial.page_query import TrialPageQuery


def test_form_fields_of_the_diff_view_keep_several_models() -> None:
    query = TrialPageQuery.from_query(QueryDict("model=vendor/a&model=vendor/b&beside=7&level=raw"))
    expected = [("model", "vendor/a"), ("model", "vendor/b"), ("view", "differences"), ("level", "raw")]
    assert query.form_fields == expected
