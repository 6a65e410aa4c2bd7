"""Metrics: their examples in the docs, and figures that are unknown."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.lab.metrics.definitions import METRICS, compute_cost_per_success, compute_tokens_per_trial
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.values import Figure, MetricInput
from toolbench.lab.results.compare.sides import read_side
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.run_figures import measure_run
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text("utf-8")
TALLY = Tally(
    cells=1, passed=6, failed=3, infra=1, deadline_failed=1, parity_passed=5, first_attempt_passed=4, calls=20,
    valid_calls=18, structured_answers=15, calling_answers=16, parse_error_turns=2, calling_turns=17,
    tried_tokens=1000, costs_known=10, known_dollars=0.6, cost=0.7,
)  # fmt: skip


def parse_examples() -> dict[str, tuple[str, str]]:
    """Return the example of each metric in docs/metrics.md: counts or times, and the result."""
    found = re.findall(r"### .+\n\n`(\w+)`: [^\n]+\n\nExample: `(.+)` gives `(.+)`\.\n", PAGE + "\n")
    return {name: (given, gives) for name, given, gives in found}


def parse_numbers(given: str) -> dict[str, Any]:
    pairs = (pair.split("=") for pair in given.split())
    return {name: float(value) if "." in value else int(value) for name, value in pairs}


def test_metrics_page_has_example_of_every_metric() -> None:
    assert set(parse_examples()) == set(METRICS)


@pytest.mark.parametrize("name", [name for name, (given, _) in parse_examples().items() if "times" not in given])
def test_metric_example_in_docs_is_correct(name: str) -> None:
    given, gives = parse_examples()[name]
    metric, tally = METRICS[name], Tally(**parse_numbers(given))
    if metric.rate:
        rate = metric.rate(tally, 90)
        assert rate is not None
        assert f"{rate.k}/{rate.n}" == gives
    else:
        assert metric.figure is not None
        figure = metric.figure(MetricInput(tally, Tally(), (tally,)))
        assert figure is not None
        assert (f"{figure.low:.4g}", figure.high) == (gives, figure.low)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["p50", "p95", "p99", "first_token"])
def test_metric_example_of_times_in_docs_is_correct(name: str) -> None:
    given, gives = parse_examples()[name]
    column = "first_token_ms" if name == "first_token" else "duration_ms"
    cell = make_cell(make_config(make_run()))
    for time in given.removeprefix("times=").split(","):
        fields: dict[str, Any] = {column: float(time)}
        make_trial(cell, **fields)
    recompute_stale_cells()
    assert render_quantile(get_matrix(MatrixQuery(scope="real", metric=name)).rows[0].value.quantile) == gives


def test_pass_hat_of_dependent_repeats_is_none() -> None:
    tally = Tally(cells=1, passed=4, failed=2, repeating_cells=1)
    assert METRICS["pass_hat_3"].figure is not None
    assert METRICS["pass_hat_3"].figure(MetricInput(tally, Tally(), (tally,))) is None


def test_tokens_per_trial_and_cost_per_success_include_failed_trials() -> None:
    tokens, cost = compute_tokens_per_trial(TALLY), compute_cost_per_success(TALLY)
    assert tokens is not None
    assert cost is not None
    assert tokens.low == 100
    assert cost.low == pytest.approx(0.1)


def test_cost_per_success_and_tokens_per_trial_unknown_are_none() -> None:
    assert compute_cost_per_success(Tally(passed=3)) is None
    assert compute_tokens_per_trial(Tally()) is None


@pytest.mark.django_db
def test_cost_and_tokens_are_equal_in_matrix_decide_and_compare() -> None:
    run = make_run()
    cell = make_cell(make_config(run))
    make_trial(cell, cost=0.5)
    failed = make_trial(cell, "fail", cost=0.25, execution=2)
    make_step(failed, execution=1, input_tokens=100, output_tokens=10, cost=0.25)
    make_step(make_trial(cell, "cancelled", cost=4.0), attempt=2)
    make_trial(cell, "na", cached_tokens=300)
    recompute_stale_cells()

    (row,) = get_matrix(MatrixQuery(scope="real", metric="cost")).rows
    assert row.figure == Figure(1.0, 1.0, "dollars")
    assert compute_tokens_per_trial(row.tally) == Figure(515, 515, "tokens")
    assert (row.tally.calls, row.tally.cached_tokens) == (4, 0)
    measured = [get_candidate_pool(DecideQuery()).candidates[0].measured, *measure_run(run.pk, group="tools")]
    assert [config.cost and config.cost.value for config in measured] == [1.0, 1.0]
    from_trials, from_cells = read_side(run.trials.all()), read_side(run.trials.all(), [cell.pk])
    assert from_trials == from_cells
    assert (from_cells.cost and from_cells.cost.value, from_cells.tokens_per_trial) == (1.0, 515)


def test_add_tallies_sums_every_count() -> None:
    twice = add_tallies([TALLY, TALLY])
    assert (twice.cells, twice.passed, twice.valid_calls, twice.cost) == (2, 12, 36, 1.4)
