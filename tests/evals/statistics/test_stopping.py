"""Tests of the rules of sequential stopping."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.sequential import simulate_cell, simulate_cells
from toolbench.evals.statistics.sequential import compute_anytime_interval
from toolbench.evals.statistics.stopping import (
    ANALYSIS_STEP_TRIALS,
    FIRST_ANALYSIS_TRIALS,
    CellCount,
    StoppingRule,
    StoppingRuleError,
    decide_cells,
)


def build_counts(*counts: tuple[int, int], error: float = 0.05) -> list[CellCount]:
    return [CellCount(k, n, error) for k, n in counts]


def test_decide_cells_threshold_is_above_below_or_open() -> None:
    found = decide_cells(
        StoppingRule("threshold", target=90), build_counts((60, 60), (36, 40), (5, 10), (10, 10), (0, 0))
    )
    assert found == ("above", "", "below", "", "")


def test_decide_cells_width_is_narrow_at_any_rate() -> None:
    assert decide_cells(StoppingRule("width", width=20), build_counts((40, 40), (200, 400), (100, 200))) == (
        "narrow",
        "narrow",
        "",
    )


def test_decide_cells_best_is_the_last_that_is_not_beaten() -> None:
    rule = StoppingRule("best")
    assert decide_cells(rule, build_counts((95, 100), (94, 100), (20, 40))) == ("", "", "beaten")
    assert decide_cells(rule, build_counts((195, 200), (120, 200), (20, 40))) == ("best", "beaten", "beaten")
    assert decide_cells(rule, build_counts((50, 50))) == ("",)


def test_compute_cell_error_is_divided_for_the_rule_best_only() -> None:
    assert StoppingRule("best", error=0.05).compute_cell_error(5) == pytest.approx(0.01)
    assert StoppingRule("threshold", error=0.05).compute_cell_error(5) == 0.05


@pytest.mark.parametrize(
    "invalid",
    [
        {"rule": "luck"},
        {"rate": "best"},
        {"error": 0},
        {"error": 0.9},
        {"target": 100},
        {"width": 0},
        {"width": "wide"},
        {"width": True},
        {"patience": 3},
        {"rule": []},
        {"rule": {}},
        {"rate": []},
    ],
)
def test_stopping_rule_from_json_refuses_invalid_rule_with_a_sentence(invalid: dict[str, Any]) -> None:
    with pytest.raises(StoppingRuleError, match=r"\.$"):
        StoppingRule.from_json({"rule": "threshold"} | invalid)


def test_stopping_rule_survives_json() -> None:
    rule = StoppingRule("width", rate="delivered", error=0.1, width=15)
    assert StoppingRule.from_json(rule.to_json()) == rule
    assert str(rule) == "end-to-end success with an interval at most 15 points wide, error 10 % a cell"


@pytest.mark.parametrize("rate", [0.85, 0.9, 0.95])
def test_simulate_cell_errs_at_most_as_often_as_stated(rate: float) -> None:
    """Simulate as `python -m benchmarks.sequential` does for every published rate, with fewer runs."""
    simulated = simulate_cell(rate, StoppingRule("threshold"), most=120, runs=400, seed=11)
    assert simulated.within(0.05)
    assert simulated.trials < 120


def test_simulate_cells_separates_unequal_and_rarely_equal_cells() -> None:
    equal = simulate_cells([0.9, 0.9], StoppingRule("best"), most=100, runs=200, seed=11)
    assert equal.within(0.05)
    unequal = simulate_cells([0.5, 0.95], StoppingRule("best"), most=200, runs=100, seed=11)
    assert unequal.within(0.05)
    assert unequal.decided == 1.0
    assert unequal.trials < 80


def test_stopping_rule_text_names_rate_aim_and_error() -> None:
    assert str(StoppingRule()) == "answered success against 90 %, error 5 % a cell"
    assert str(StoppingRule("width")) == "answered success with an interval at most 20 points wide, error 5 % a cell"
    assert str(StoppingRule("best")) == "the best answered success of every scenario, error 5 % a scenario"


def test_first_analysis_trials_are_those_of_the_method_page() -> None:
    method = " ".join((Path(__file__).parents[3] / "docs" / "method.md").read_text(encoding="utf-8").split())
    assert (
        f"Each cell starts with {FIRST_ANALYSIS_TRIALS} trials; "
        f"undecided cells get {ANALYSIS_STEP_TRIALS} more at a time." in method
    )


@pytest.mark.parametrize(
    ("key", "accepted", "refused"),
    [
        ("error", (0.001, 0.5), (0.0009, 0.51)),
        ("target", (0.5, 99.5), (-0.5, 0, 100)),
        ("width", (1, 99), (0.5, 99.5)),
    ],
)
def test_stopping_rule_from_json_accepts_values_up_to_the_bounds(
    key: str, accepted: tuple[float, ...], refused: tuple[float, ...]
) -> None:
    for value in accepted:
        assert getattr(StoppingRule.from_json({key: value}), key) == value
    for value in refused:
        with pytest.raises(StoppingRuleError, match=key):
            StoppingRule.from_json({key: value})


def test_stopping_rule_from_json_names_the_first_unknown_key() -> None:
    with pytest.raises(StoppingRuleError, match="has no aim"):
        StoppingRule.from_json({"patience": 3, "aim": 1})


@pytest.mark.parametrize(("cell_count", "error"), [(0, 0.05), (1, 0.05), (2, 0.025)])
def test_compute_cell_error_without_rivals_is_the_whole_error(cell_count: int, error: float) -> None:
    assert StoppingRule("best", error=0.05).compute_cell_error(cell_count) == pytest.approx(error)


def test_decide_cells_target_of_90_is_decided_from_53_passes_on() -> None:
    assert decide_cells(StoppingRule("threshold", target=90), build_counts((52, 52), (53, 53))) == ("", "above")


def test_decide_cells_target_of_10_is_decided_from_53_failures_on() -> None:
    assert decide_cells(StoppingRule("threshold", target=10), build_counts((0, 52), (0, 53))) == ("", "below")


@pytest.mark.parametrize(("width", "found"), [(12.6, ""), (12.7, "narrow")])
def test_decide_cells_width_is_exact_to_a_tenth_of_a_point(width: float, found: str) -> None:
    assert decide_cells(StoppingRule("width", width=width), build_counts((40, 40))) == (found,)


def test_decide_cells_bound_equal_to_its_aim_is_decided() -> None:
    low, high = compute_anytime_interval(2, 5, 0.05)
    assert (100 * (high - low)) / 100 == high - low
    assert decide_cells(StoppingRule("width", width=100 * (high - low)), build_counts((2, 5))) == ("narrow",)
    low = compute_anytime_interval(3, 20, 0.05)[0]
    assert (100 * low) / 100 == low
    assert decide_cells(StoppingRule("threshold", target=100 * low), build_counts((3, 20))) == ("above",)


def test_decide_cells_upper_bound_equal_to_target_is_not_below() -> None:
    high = compute_anytime_interval(1, 10, 0.05)[1]
    assert (100 * high) / 100 == high
    assert decide_cells(StoppingRule("threshold", target=100 * high), build_counts((1, 10))) == ("",)
