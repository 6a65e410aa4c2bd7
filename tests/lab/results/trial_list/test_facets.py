"""Facets: counts by value, and links that narrow the list."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.results.trial_list import index
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def list_counts(trial_filter: TrialFilter) -> dict[str, dict[str, int]]:
    facets = get_trials(trial_filter).facets
    return {facet.name: {value.value: value.count for value in facet.values} for facet in facets}


def test_facets_count_the_matching_trials_by_value() -> None:
    run = make_run()
    make_trials(make_cell(make_config(run, make_model("a"))), **{"pass": 3, "fail": 2, "queued": 1})
    make_trials(make_cell(make_config(run, make_model("b")), "weather"), **{"pass": 4})
    counts = list_counts(TrialFilter())
    assert counts["outcome"] == {"pass": 7, "fail": 2, "queued": 1}
    assert counts["model"] == {"a": 6, "b": 4}
    assert counts["scenario"] == {"happy_path": 6, "weather": 4}
    assert list_counts(TrialFilter(model="b"))["outcome"] == {"pass": 4}


def test_facet_value_links_to_as_many_trials_as_it_counts() -> None:
    run = make_run()
    for name in ("a", "b"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 3, "fail": 2})
    chosen = TrialFilter(model="a", sort="slow")
    for facet in get_trials(chosen).facets:
        for value in facet.values:
            opened = TrialFilter.from_query(QueryDict(value.query))
            assert opened.sort == "slow"
            assert get_trials(opened).total == (10 if value.is_chosen else value.count)


def test_trial_list_counts_and_sorts_only_the_newest_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_COUNTED_TRIALS", 4)
    cell = make_cell(make_config(make_run()))
    older, newer = make_trials(cell, fail=2), make_trials(cell, **{"pass": 4})
    page = get_trials(TrialFilter())
    assert (page.total, page.total_is_more) == (4, True)
    assert {row.id for row in page.rows} == {trial.pk for trial in newer}
    assert get_trials(TrialFilter(outcome="fail")).total == len(older)
