"""Tests of the published rates of the personas, measured with the real scenarios, loop, driver and verdicts."""

from collections import Counter

import pytest

from benchmarks.simulated_trials import Cell, judge_trials, play_trials
from tests.providers.simulated.rate_check import is_near_published_rate
from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.simulated.personas import load_personas

TRIALS, CERTAIN_TRIALS = 25, 3
STREAMED_TRIALS = 10  # if the rate is that of whole answers, which more trials measure
NEVER_ANSWERS = {"hangs"}
METHODS = ("native", "text_json", "constrained", "template")
NEEDS_TWO_CALLS_A_TURN = {"happy_path_parallel"}  # other methods make one call a message
CORE = {"tools", "control", "weather", "intent"}
STEADY_TRIALS = 30
STEADY = ("reliable-90", "reliable-70")


def find_published_rate(cell: Cell) -> float:
    rates = load_personas()[cell.model].true_rates
    rates = {**rates, **rates.get("streamed", {})} if cell.stream else rates
    group = scenarios.lookup_scenario(cell.scenario).group
    rate: float = rates[cell.scenario if cell.scenario in rates else group][cell.strategy]
    return rate


def check_rate(cell: Cell) -> None:
    """Compare the measured with the published rate; a few trials are enough if nothing is random."""
    rate, persona = find_published_rate(cell), load_personas()[cell.model]
    is_random = rate not in (0, 1) or persona.rate not in (0, 1)
    has_rate_of_whole = cell.stream and "streamed" not in persona.true_rates
    trials = (STREAMED_TRIALS if has_rate_of_whole else TRIALS) if is_random else CERTAIN_TRIALS
    passed = sum(verdict.task_pass is True for verdict in judge_trials(cell, range(trials)))
    assert is_near_published_rate(passed, trials, rate), cell


@pytest.mark.parametrize("slug", [slug for slug in load_personas() if slug not in NEVER_ANSWERS])
def test_persona_passes_at_its_published_rates(slug: str) -> None:
    cells = [Cell((slug,), "happy_path", strategy, kind=PUBLISHED_WORDING) for strategy in ("raw", "production")]
    if load_personas()[slug].workarounds:
        cells.append(Cell((slug,), "happy_path", "baseline", kind=PUBLISHED_WORDING))
    for cell in (*cells, Cell((slug,), "chat_only", "raw", kind=PUBLISHED_WORDING)):
        check_rate(cell)


@pytest.mark.parametrize("slug", [slug for slug in load_personas() if slug not in NEVER_ANSWERS])
def test_persona_streams_pass_at_their_published_rate(slug: str) -> None:
    check_rate(Cell((slug,), "happy_path", "production", stream=True, kind=PUBLISHED_WORDING))


@pytest.mark.parametrize(
    "slug", [slug for slug, persona in load_personas().items() if persona.rate in (0, 1) and slug not in NEVER_ANSWERS]
)
def test_persona_with_a_certain_rate_keeps_it_with_several_calls(slug: str) -> None:
    for scenario in ("partial_success_failure", "happy_path_parallel", "long_arguments_guard_uncapped"):
        cell = Cell((slug,), scenario, "production")
        (verdict,) = judge_trials(cell, range(1))
        assert (verdict.task_pass is True) == (find_published_rate(cell) == 1), cell


def test_persona_streamed_calls_without_index_are_separated() -> None:
    for slug in ("stream-no-index", "stream-index-zero"):
        verdicts = judge_trials(Cell((slug,), "happy_path_parallel", stream=True, kind=PUBLISHED_WORDING), range(4))
        assert [verdict.outcome for verdict in verdicts] == ["pass"] * 4, slug


@pytest.mark.parametrize("scenario", [scenario.slug for scenario in scenarios.list_scenarios()])
def test_perfect_persona_passes_every_scenario_by_every_method(scenario: str) -> None:
    definition = scenarios.lookup_scenario(scenario)
    trials = 8 if definition.group in CORE else 2
    for method in METHODS[:1] if scenario in NEEDS_TWO_CALLS_A_TURN else definition.methods:
        verdicts = judge_trials(Cell(("perfect",), scenario, method=method), range(trials))
        assert [verdict.outcome for verdict in verdicts] == ["pass"] * trials, method


@pytest.mark.parametrize("slug", STEADY)
def test_steady_persona_passes_packs_at_its_published_rate(slug: str) -> None:
    for group in (*scenarios.PACKS, "intent"):
        members = [scenario.slug for scenario in scenarios.group_scenarios()[group]]
        verdicts = [
            verdict
            for index, scenario in enumerate(members)
            for verdict in judge_trials(Cell((slug,), scenario), range(index, STEADY_TRIALS, len(members)))
        ]
        rate = find_published_rate(Cell((slug,), members[0], kind=PUBLISHED_WORDING))
        passed = sum(verdict.task_pass is True for verdict in verdicts)
        assert is_near_published_rate(passed, len(verdicts), rate), group


@pytest.mark.parametrize("slug", ["rate-limited", "flaky-503", "error-in-200"])
def test_recovery_pack_trial_passes_despite_a_transient_provider_error(slug: str) -> None:
    trials = play_trials((Cell((slug,), "recovery_busy"), seed) for seed in range(6))
    steps = [step for trial in trials for step in trial.steps if isinstance(step, ExchangeStep)]
    assert any(step.error for step in steps)
    assert [trial.verdict.outcome for trial in trials] == ["pass"] * 6


@pytest.mark.parametrize(
    "slug", [slug for slug, persona in load_personas().items() if persona.true_rates["infrastructure"]]
)
def test_failing_provider_gives_infrastructure_errors_and_no_model_failure(slug: str) -> None:
    cell = Cell((slug,), "happy_path", kind=PUBLISHED_WORDING)
    outcomes = Counter(verdict.outcome for verdict in judge_trials(cell, range(TRIALS)))
    assert outcomes.keys() <= {"pass", "infra"}
    assert is_near_published_rate(outcomes["infra"], TRIALS, 1 - find_published_rate(cell))
