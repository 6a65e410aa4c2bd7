"""What the personas publish, measured through the real scenarios, loop, driver and verdicts."""

import pytest

from benchmarks.simulated_trials import Cell, judge_trials
from tests.providers.simulated.rate_check import is_near_published_rate
from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.providers.simulated.personas import load_personas

TRIALS, TRIALS_WITHOUT_CHANCE = 25, 3
STREAMED_TRIALS = 10  # where the rate is that of whole answers, which is measured on more
NEEDS_PATIENCE = {"hangs"}
METHODS = ("native", "text_json", "constrained", "template")
NEEDS_TWO_CALLS_A_TURN = {"happy_path_parallel"}  # asking in words gives one
CORE = {"tools", "control", "weather", "intent"}
STEADY_TRIALS = 30
STEADY = ("reliable-90", "reliable-70")


def published(cell: Cell) -> float:
    rates = load_personas()[cell.model].true_rates
    rates = {**rates, **rates.get("streamed", {})} if cell.stream else rates
    group = scenarios.lookup_scenario(cell.scenario).group
    rate: float = rates[cell.scenario if cell.scenario in rates else group][cell.strategy]
    return rate


def assert_measured(cell: Cell) -> None:
    """Where nothing is left to chance, a few trials say as much as many."""
    rate, persona = published(cell), load_personas()[cell.model]
    chance = rate not in (0, 1) or persona.rate not in (0, 1)
    as_whole = cell.stream and "streamed" not in persona.true_rates
    trials = (STREAMED_TRIALS if as_whole else TRIALS) if chance else TRIALS_WITHOUT_CHANCE
    passed = sum(verdict.task_pass is True for verdict in judge_trials(cell, range(trials)))
    assert is_near_published_rate(passed, trials, rate), cell


@pytest.mark.parametrize("slug", [slug for slug in load_personas() if slug not in NEEDS_PATIENCE])
def test_the_lab_measures_what_a_persona_publishes(slug: str) -> None:
    cells = [Cell((slug,), "happy_path", strategy, kind=PUBLISHED_WORDING) for strategy in ("raw", "production")]
    if load_personas()[slug].workarounds:
        cells.append(Cell((slug,), "happy_path", "baseline", kind=PUBLISHED_WORDING))
    for cell in (*cells, Cell((slug,), "chat_only", "raw", kind=PUBLISHED_WORDING)):
        assert_measured(cell)


@pytest.mark.parametrize("slug", [slug for slug in load_personas() if slug not in NEEDS_PATIENCE])
def test_the_same_is_measured_of_streams(slug: str) -> None:
    assert_measured(Cell((slug,), "happy_path", "production", stream=True, kind=PUBLISHED_WORDING))


@pytest.mark.parametrize(
    "slug", [slug for slug, persona in load_personas().items() if persona.rate in (0, 1) and slug not in NEEDS_PATIENCE]
)
def test_certain_rates_hold_where_several_calls_are_wanted(slug: str) -> None:
    for scenario in ("partial_success_failure", "happy_path_parallel", "long_arguments_guard_uncapped"):
        cell = Cell((slug,), scenario, "production")
        (verdict,) = judge_trials(cell, range(1))
        assert (verdict.task_pass is True) == (published(cell) == 1), cell


def test_several_streamed_calls_are_told_apart_without_their_indexes() -> None:
    for slug in ("stream-no-index", "stream-index-zero"):
        verdicts = judge_trials(Cell((slug,), "happy_path_parallel", stream=True, kind=PUBLISHED_WORDING), range(4))
        assert [verdict.outcome for verdict in verdicts] == ["pass"] * 4, slug


@pytest.mark.parametrize("scenario", [scenario.slug for scenario in scenarios.list_scenarios()])
def test_the_perfect_persona_passes_every_scenario_in_every_method(scenario: str) -> None:
    found = scenarios.lookup_scenario(scenario)
    trials = 8 if found.group in CORE else 2
    for method in METHODS[:1] if scenario in NEEDS_TWO_CALLS_A_TURN else found.methods:
        verdicts = judge_trials(Cell(("perfect",), scenario, method=method), range(trials))
        assert [verdict.outcome for verdict in verdicts] == ["pass"] * trials, method


@pytest.mark.parametrize("slug", STEADY)
def test_the_steady_personas_publish_the_packs_as_well(slug: str) -> None:
    for group in (*scenarios.PACKS, "intent"):
        members = [scenario.slug for scenario in scenarios.group_scenarios()[group]]
        verdicts = [
            verdict
            for place, scenario in enumerate(members)
            for verdict in judge_trials(Cell((slug,), scenario), range(place, STEADY_TRIALS, len(members)))
        ]
        rate = published(Cell((slug,), members[0], kind=PUBLISHED_WORDING))
        passed = sum(verdict.task_pass is True for verdict in verdicts)
        assert is_near_published_rate(passed, len(verdicts), rate), group


@pytest.mark.parametrize("slug", ["rate-limited", "flaky-503", "error-in-200"])
def test_faults_of_a_provider_befall_the_recovery_pack_as_infrastructure(slug: str) -> None:
    verdicts = judge_trials(Cell((slug,), "recovery_busy"), range(6))
    assert {verdict.outcome for verdict in verdicts} <= {"pass", "infra"}


@pytest.mark.parametrize(
    "slug", [slug for slug, persona in load_personas().items() if persona.true_rates["infrastructure"]]
)
def test_provider_in_trouble_is_infrastructure_not_model_failure(slug: str) -> None:
    if slug in NEEDS_PATIENCE:
        assert load_personas()[slug].drift == "never_answers"
        return
    verdicts = judge_trials(Cell((slug,), "happy_path", kind=PUBLISHED_WORDING), range(TRIALS))
    assert {verdict.outcome for verdict in verdicts} <= {"pass", "infra"}
