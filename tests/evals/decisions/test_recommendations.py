"""Tests of recommendations by named rules, and of the reasons for differences from published ones."""

import re

import pytest

from toolbench.evals.decisions.recommendations import (
    RECOMMENDATION_RULES,
    ModelRecommendation,
    ProfileResult,
    has_overlap,
    list_disagreements,
    recommend,
)
from toolbench.evals.published import load_snapshots
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import pool_samples


def recommend_for_snapshot() -> dict[str, ModelRecommendation]:
    by_model: dict[str, list[ProfileResult]] = {}
    for cell in load_snapshots()[0].cells:
        timeouts = sum(failure.count for failure in cell.failures if failure.name == "TIMEOUT")
        passed, tried = cell.tool
        result = ProfileResult(
            cell.model, cell.profile, passed, tried, tried - timeouts, is_tools_off=cell.not_applicable
        )
        by_model.setdefault(cell.model, []).append(result)
    return {model: recommend(profiles, 0.9) for model, profiles in by_model.items()}


def list_snapshot_disagreements() -> dict[str, list[tuple[str, str, str]]]:
    """Return the disagreements by model, without vendor and route: subject, published and recommended value."""
    advice_by_model = recommend_for_snapshot()
    found = {}
    for words in load_snapshots()[0].recommendations:
        disagreements = list_disagreements(
            advice_by_model[words.model], published_verdict=words.recommended, published_profile=words.profile
        )
        name = words.model.partition("/")[2].partition(":")[0]
        found[name] = [(item.about, item.published, item.recommended) for item in disagreements]
    return {name: disagreements for name, disagreements in found.items() if disagreements}


def test_list_disagreements_on_snapshot_finds_three_verdicts() -> None:
    verdicts = {
        name: pair
        for name, disagreements in list_snapshot_disagreements().items()
        for about, *pair in disagreements
        if about == "verdict"
    }
    assert verdicts == {
        "gpt-5.2": ["Yes", "Conditional"],
        "minimax-m2-her": ["No (for tool calling)", "Not applicable"],
        "gemini-2.5-flash": ["Yes", "Conditional"],
    }


def test_recommend_prefers_a_profile_only_if_intervals_are_disjoint() -> None:
    profiles = {
        name: pair
        for name, disagreements in list_snapshot_disagreements().items()
        for about, *pair in disagreements
        if about == "profile"
    }
    assert all(recommended == "default" for _, recommended in profiles.values())
    assert "qwen3-235b-a22b-2507" not in profiles
    advice_by_model = {model: advice for model, advice in recommend_for_snapshot().items()}
    assert advice_by_model["qwen/qwen3-235b-a22b-2507:nitro"].profile_rule == "best-interval"
    assert advice_by_model["deepseek/deepseek-v3.2:nitro"].profile_rule == "overlapping"


def test_list_disagreements_names_rule_and_reason_of_each() -> None:
    advice_by_model = recommend_for_snapshot()
    for words in load_snapshots()[0].recommendations:
        for disagreement in list_disagreements(
            advice_by_model[words.model], published_verdict=words.recommended, published_profile=words.profile
        ):
            assert disagreement.reason.startswith("Rule ")
    assert advice_by_model["openai/gpt-5.2:nitro"].reason == (
        "39/40 [87–100] %: the target of 90 % lies inside the interval, so more trials are needed; 22 more trials at "
        "this rate would decide it."
    )


def test_has_overlap_of_40_and_36_but_not_of_40_and_30_passes() -> None:
    best, near = ProfileResult("a", "default", 40, 40, 40), ProfileResult("b", "default", 36, 40, 40)
    assert has_overlap(best, near)
    assert not has_overlap(best, ProfileResult("c", "default", 30, 40, 40))


@pytest.mark.parametrize(
    ("tried", "rule"),
    [
        (ProfileResult("m", "p", 0, 40, 40, is_tools_off=True), "tools-off"),
        (ProfileResult("m", "p", 0, 0, 0), "no-trials"),
        (ProfileResult("m", "p", 20, 40, 40), "below"),
        (ProfileResult("m", "p", 60, 66, 60), "infrastructure"),
        (ProfileResult("m", "p", 99, 99, 99, p95_high_ms=30_000, p95_limit_ms=20_000), "slow"),
        (ProfileResult("m", "p", 99, 99, 99, p95_high_ms=10_000, p95_limit_ms=20_000), "reaches-target"),
        (ProfileResult("m", "p", 36, 40, 40), "undecided"),
    ],
)
def test_recommend_uses_the_first_rule_that_applies(tried: ProfileResult, rule: str) -> None:
    assert recommend([tried], 0.9).rule == rule


def test_recommendation_rules_have_unique_names() -> None:
    assert len({rule.name for rule in RECOMMENDATION_RULES}) == len(RECOMMENDATION_RULES)


SCENARIOS = ("happy_path", "guard", "recovery")
SHORT: dict[str, tuple[tuple[ScenarioSample, ...], str]] = {
    "equally many": ((ScenarioSample(10, 10),) * 3, "6 more trials (2 of each scenario)"),
    "one is short": (
        (ScenarioSample(40, 40), ScenarioSample(2, 2), ScenarioSample(40, 40)),
        "more trials of guard (2 so far)",
    ),
    "two are short": (
        (ScenarioSample(60, 60), ScenarioSample(5, 5), ScenarioSample(5, 5)),
        "each of guard (5 so far), recovery (5 so far),",
    ),
    "clustered": (
        (ScenarioSample(40, 40), ScenarioSample(3, 3, clustered=True), ScenarioSample(40, 40)),
        "more trials of guard (worth 3",
    ),
}


@pytest.mark.parametrize("name", SHORT)
def test_recommend_states_the_trials_that_would_decide(name: str) -> None:
    parts, words = SHORT[name]
    count = sum(int(part.n) for part in parts)
    advice = recommend(
        [ProfileResult("m", "p", count, count, count, end_to_end_by_scenario=parts, scenarios=SCENARIOS)], 0.9
    )
    assert advice.rule == "undecided"
    assert words in advice.reason
    total = re.search(r"; ([0-9,]+) more trial", advice.reason)
    indices = [index for index, scenario in enumerate(SCENARIOS) if scenario in advice.reason] or [0, 1, 2]
    assert total
    each = int(total[1].replace(",", "")) // len(indices)

    def low(more: int) -> float:
        grown = [
            ScenarioSample(p.k + more, p.n + more, p.stopping, p.clustered) if n in indices else p
            for n, p in enumerate(parts)
        ]
        return pool_samples(grown).low

    assert low(each) >= 0.9 > low(each - 1)
