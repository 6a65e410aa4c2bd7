"""Candidates of a decision: sums of cells with equal settings."""

from typing import Any

import pytest
from django.http import QueryDict
from pytest_django import DjangoAssertNumQueries

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_step,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.lab.paid_requests import PRIVATE_ADDRESS_ORIGIN
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.recommendations import recommend_from_trials
from toolbench.lab.results.decide.records import build_frozen_rate, save_record
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def test_candidate_pool_sums_runs_with_equal_settings() -> None:
    for settings in ("one", "one", "two"):
        make_trials(make_cell(make_config(make_run(), policy_hash=settings)), **{"pass": 3, "infra": 1})
    found = {candidate.policy_hash: candidate for candidate in get_candidate_pool(DecideQuery()).candidates}
    assert (found["one"].measured.passed, found["one"].measured.tried, found["one"].measured.answered) == (6, 8, 6)
    assert len(found["one"].run_ids) == 2
    assert found["two"].measured.tried == 4


def test_candidate_pool_excludes_controls_confirmations_deleted_runs() -> None:
    make_trials(make_cell(make_config(make_run()), "chat_only"), **{"pass": 3})
    make_trials(make_cell(make_config(make_run(purpose="confirm"))), **{"pass": 3})
    make_trials(make_cell(make_config(make_run(deleted_at="2026-01-01T00:00Z"))), **{"pass": 3})
    assert get_candidate_pool(DecideQuery()).candidates == ()


def test_candidate_pool_names_infra_errors_and_keeps_their_cost() -> None:
    cell = make_cell(make_config(make_run()))
    for _ in range(4):
        make_trial(cell, cost=0.01)
    make_trial(cell, "infra", failure_class="rate_limited", input_tokens=0, output_tokens=0)
    recompute_stale_cells()
    measured = get_candidate_pool(DecideQuery()).candidates[0].measured
    assert measured.infra_errors == (("rate_limited", 1),)
    assert measured.cost
    assert measured.cost.value == pytest.approx(0.01)
    assert measured.cost_from == "reported by the provider"
    assert len(measured.times) == 4


def test_candidate_cost_uses_list_price_and_tokens_of_all_executions() -> None:
    model = make_model("gpt-4o", provider=make_provider("OpenAI", template="openai"))
    cell = make_cell(make_config(make_run(), model))
    make_trial(cell, input_tokens=1_000_000, output_tokens=0)
    retried_trial = make_trial(cell, "fail", input_tokens=0, output_tokens=100_000, execution=2)
    make_step(retried_trial, execution=1, input_tokens=1_000_000, output_tokens=0)
    recompute_stale_cells()
    measured = get_candidate_pool(DecideQuery()).candidates[0].measured
    assert measured.cost
    assert measured.cost.value == pytest.approx(2.5 + 2.5 + 1.0)
    figure = get_matrix(MatrixQuery(scope="real", metric="cost")).rows[0].figure
    assert figure
    assert figure.low == pytest.approx(measured.cost.value)
    assert measured.cost_from.startswith("price of 20")


def test_candidate_cost_of_private_server_is_zero_without_tokens() -> None:
    model = make_model(provider=make_provider("Own", base_url="http://127.0.0.1:8799"))
    cell = make_cell(make_config(make_run(), model))
    make_trial(cell)
    make_trial(cell, input_tokens=0, output_tokens=0)
    recompute_stale_cells()
    cell.refresh_from_db()
    measured = get_candidate_pool(DecideQuery()).candidates[0].measured
    assert cell.cost == 0
    assert measured.cost == IntervalEstimate(0, 0, 0)
    assert measured.cost_from == PRIVATE_ADDRESS_ORIGIN


def test_candidate_cost_known_for_some_trials_is_unknown() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, cost=0.01)
    make_trial(cell)
    recompute_stale_cells()
    measured = get_candidate_pool(DecideQuery()).candidates[0].measured
    assert measured.cost is None
    assert measured.cost_from == "1 of 2 trials have no reported cost, and their price or their tokens are not known"
    assert get_matrix(MatrixQuery(scope="real", metric="cost")).rows[0].figure is None


def test_candidate_pool_weights_scenarios_equally_and_clusters_repeats() -> None:
    first = make_run(instance_kind="drawn")
    for run in (first, make_run(instance_kind="drawn", repeat_of=first, purpose="aa")):
        config = make_config(run)
        cell = make_cell(config)
        for seed in range(10):
            make_trial(cell, "pass" if seed < 8 else "fail", instance_seed=seed)
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 5})
    measured = get_candidate_pool(DecideQuery()).candidates[0].measured
    assert (measured.end_to_end_successes, measured.tried) == (21, 25)
    assert [(part.n, part.clustered) for part in measured.end_to_end_by_scenario] == [(10, True), (5, False)]
    assert measured.end_to_end_pool.share == pytest.approx((0.8 + 1) / 2)


def test_candidate_counts_retried_errors_as_failures_with_a_caution() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "pass", errors_retried=1)
    make_trials(cell, **{"pass": 3})
    found = get_candidate_pool(DecideQuery()).candidates[0]
    assert (found.measured.passed, found.measured.end_to_end_successes) == (4, 3)
    assert "trials retried after an error, which count as failures: 1" in found.cautions


def test_decide_page_sequential_cells_have_anytime_valid_bounds() -> None:
    cell = make_cell(make_config(make_run(until={"rule": "threshold"})), error=0.05)
    make_trials(cell, **{"pass": 20})
    row = get_decide_page(DecideQuery()).rows[0]
    assert (row.end_to_end.interval_name, row.answered.interval_name) == ("anytime-valid, 95 %", "anytime-valid, 95 %")
    assert recommend_from_trials(DecideQuery()).rows[0].rate == row.end_to_end
    frozen = save_record(DecideQuery(), owner=None)
    assert build_frozen_rate(frozen.evidence[0]) == row.end_to_end


def test_candidate_names_missing_scenarios() -> None:
    run = make_run()
    both, one = make_config(run, make_model("vendor/both")), make_config(run, make_model("vendor/one"))
    for config, scenario in ((both, "happy_path"), (both, "long_arguments_guard"), (one, "happy_path")):
        make_trials(make_cell(config, scenario), **{"pass": 1})
    missing = {found.model: found.measured.missing_scenarios for found in get_candidate_pool(DecideQuery()).candidates}
    assert missing == {"vendor/both": (), "vendor/one": ("long_arguments_guard",)}


def test_candidate_with_a_trial_without_an_answer_has_no_repeats() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    make_trial(cell, "fail", answer_hash="")
    make_trials(cell, **{"pass": 3})
    row = get_decide_page(DecideQuery()).rows[0]
    assert "repeats" not in [reason.name for reason in row.assessment.reasons]
    assert not row.end_to_end.withheld


def test_candidate_without_an_ended_trial_of_a_scenario_misses_it() -> None:
    run = make_run()
    both, queued, cancelled = (make_config(run, make_model(name)) for name in ("vendor/a", "vendor/b", "vendor/c"))
    for config, outcome in ((both, "pass"), (queued, "queued"), (cancelled, "cancelled")):
        make_trials(make_cell(config, "happy_path"), **{"pass": 1})
        make_trials(make_cell(config, "long_arguments_guard"), **{outcome: 1})
        make_trials(make_cell(config, "missing_workspace_id"), cancelled=1)
    found = {candidate.model: candidate for candidate in get_candidate_pool(DecideQuery()).candidates}
    assert found["vendor/a"].measured.missing_scenarios == ()
    assert found["vendor/a"].scenarios == ("happy_path", "long_arguments_guard")
    for name in ("vendor/b", "vendor/c"):
        assert found[name].measured.missing_scenarios == ("long_arguments_guard",)
        assert (found[name].scenarios, found[name].measured.scenarios) == (("happy_path",), ("happy_path",))


def test_candidate_labels_tell_kinds_of_instances_and_tool_use_apart() -> None:
    settings: list[tuple[str, dict[str, str]]] = [
        ("parity", {}),
        ("drawn", {}),
        ("drawn", {"tool_use_mode": "relaxed"}),
    ]
    for kind, fields in settings:
        config = make_config(make_run(instance_kind=kind), make_model("a"), **fields)
        make_trials(make_cell(config), **{"pass": 1})
    make_trials(make_cell(make_config(make_run(), make_model("b"))), **{"pass": 1})
    candidates = get_candidate_pool(DecideQuery()).candidates
    assert {candidate.measured.label for candidate in candidates} == {
        "Example · a · default · production · native · fixed instances · tool use enforced",
        "Example · a · default · production · native · drawn instances · tool use enforced",
        "Example · a · default · production · native · drawn instances · tool use relaxed",
        "Example · b · default · production · native",
    }
    assert {candidate.name for candidate in candidates} == {
        "Example · a · default · production · native",
        "Example · b · default · production · native",
    }


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"policy_hash": "other"}, "differ only in frozen settings"), ({"tool_use_mode": "relaxed"}, "the tool-use mode")],
)
def test_candidate_pool_says_why_rows_of_one_name_are_not_pooled(fields: dict[str, Any], text: str) -> None:
    for config in (make_config(make_run()), make_config(make_run(), **fields)):
        make_trials(make_cell(config), **{"pass": 1})
    pool = get_candidate_pool(DecideQuery())
    assert len(pool.candidates) == 2
    (caution,) = [sentence for sentence in pool.cautions if "not pooled" in sentence]
    assert text in caution


def test_candidate_links_to_its_trials_without_controls_among_test_cases() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config, "own_task", scenario_group="own"), **{"pass": 2})
    make_trials(make_cell(config, "own_control", scenario_group="own", control=True), **{"pass": 3})
    (candidate,) = get_candidate_pool(DecideQuery()).candidates
    found = get_trials(TrialFilter.from_query(QueryDict(candidate.trial_filter.query())))
    assert found.total == candidate.tally.trial_count == 2
    assert candidate.trial_filter.without == ""


def test_candidate_pool_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for name in ("vendor/a", "vendor/b", "vendor/c"):
        make_trials(make_cell(make_config(make_run(), make_model(name))), **{"pass": 1})
    with django_assert_num_queries(4):
        get_candidate_pool(DecideQuery())
