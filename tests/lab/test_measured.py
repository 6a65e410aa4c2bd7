"""What a decision is computed over: sums of cells with equal settings, never a simulated one beside a real one."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials, recompute_all
from toolbench.lab.decide_query import DecideQuery
from toolbench.lab.measured import get_pool

pytestmark = pytest.mark.django_db


def test_runs_with_equal_settings_are_pooled_and_others_kept_apart() -> None:
    for settings in ("one", "one", "two"):
        make_trials(make_cell(make_config(make_run(), policy_hash=settings)), **{"pass": 3, "infra": 1})
    found = {one.settings: one for one in get_pool(DecideQuery()).candidates}
    assert (found["one"].measured.passed, found["one"].measured.tried, found["one"].measured.answered) == (6, 8, 6)
    assert len(found["one"].run_ids) == 2
    assert found["two"].measured.tried == 4


def test_controls_confirmations_and_deleted_runs_take_no_part() -> None:
    make_trials(make_cell(make_config(make_run()), "chat_only"), **{"pass": 3})
    make_trials(make_cell(make_config(make_run(purpose="confirm"))), **{"pass": 3})
    make_trials(make_cell(make_config(make_run(deleted_at="2026-01-01T00:00Z"))), **{"pass": 3})
    assert get_pool(DecideQuery()).candidates == ()


def test_what_was_lost_is_named_and_what_was_paid_is_counted() -> None:
    cell = make_cell(make_config(make_run()))
    for _ in range(4):
        make_trial(cell, cost=0.01)
    make_trial(cell, "infra", failure_class="rate_limited")
    recompute_all()
    measured = get_pool(DecideQuery()).candidates[0].measured
    assert measured.lost == (("rate_limited", 1),)
    assert measured.cost
    assert measured.cost.value == pytest.approx(0.01)
    assert len(measured.times) == 4


def test_whoever_did_not_meet_every_scenario_is_told_so() -> None:
    run = make_run()
    both, one = make_config(run, make_model("vendor/both")), make_config(run, make_model("vendor/one"))
    for config, scenario in ((both, "happy_path"), (both, "long_arguments_guard"), (one, "happy_path")):
        make_trials(make_cell(config, scenario), **{"pass": 1})
    missing = {found.model: found.measured.missing for found in get_pool(DecideQuery()).candidates}
    assert missing == {"vendor/both": (), "vendor/one": ("long_arguments_guard",)}


def test_the_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for name in ("vendor/a", "vendor/b", "vendor/c"):
        make_trials(make_cell(make_config(make_run(), make_model(name))), **{"pass": 1})
    with django_assert_num_queries(5):
        get_pool(DecideQuery())
