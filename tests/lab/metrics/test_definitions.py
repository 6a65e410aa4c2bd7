"""Metrics: their examples in the docs, and figures that are unknown."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.lab.metrics.definitions import METRICS, compute_cost_per_success, compute_tokens_per_trial
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.values import MetricInput
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text("utf-8")
TALLY = Tally(
    cells=1, passed=6, failed=3, infra=1, deadline_failed=1, parity_passed=5, first_attempt_passed=4, calls=20,
    valid_calls=18, structured_answers=15, calling_answers=16, parse_error_turns=2, calling_turns=17,
    input_tokens=900, output_tokens=100, cost=0.6,
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


def test_add_tallies_sums_every_count() -> None:
    twice = add_tallies([TALLY, TALLY])
    assert (twice.cells, twice.passed, twice.valid_calls, twice.cost) == (2, 12, 36, 1.2)
