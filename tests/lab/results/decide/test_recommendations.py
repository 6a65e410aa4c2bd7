"""Recommendations from trials: verdicts and rates agree with the decision page."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.evals.decisions.recommendations import CONDITIONAL, YES
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.recommendations import RecommendationRow, recommend_from_trials

pytestmark = pytest.mark.django_db


def recommend(within: str = "20") -> RecommendationRow:
    (row,) = recommend_from_trials(DecideQuery(want="fastest", within=within)).rows
    return row


def test_recommend_from_trials_says_yes_if_the_decision_qualifies() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 76})
    row = recommend()
    assert (row.recommendation.verdict, row.recommendation.rule) == (YES, "reaches-target")
    assert row.p95 == "at most 1.8 s"
    assert recommend(within="1").recommendation.verdict == CONDITIONAL


def test_recommend_from_trials_withholds_interval_of_repeats() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for _ in range(80):
        make_trial(cell, answer_hash="same")
    recompute_stale_cells()
    row = recommend()
    assert (row.recommendation.verdict, row.recommendation.rule) == (CONDITIONAL, "repeats")
    assert row.rate == get_decide_page(DecideQuery(want="fastest")).rows[0].end_to_end
    assert row.rate
    assert (row.rate.withheld, row.rate.text) == (True, "80/80, 1 distinct")


def test_recommend_from_trials_local_model_is_conditional() -> None:
    make_trials(make_cell(make_config(make_run(), provider_kind="local")), **{"pass": 76})
    assert recommend().recommendation.rule == "local"
    assert recommend(within="none").recommendation.rule == "local"
