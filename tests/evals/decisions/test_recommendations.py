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


def advice_on_snapshot() -> dict[str, ModelRecommendation]:
    by_model: dict[str, list[ProfileResult]] = {}
    for cell in load_snapshots()[0].cells:
        timeouts = sum(failure.count for failure in cell.failures if failure.name == "TIMEOUT")
        passed, tried = cell.tool
        one = ProfileResult(cell.model, cell.profile, passed, tried, tried - timeouts, is_tools_off=cell.not_applicable)
        by_model.setdefault(cell.model, []).append(one)
    return {model: recommend(profiles, 0.9) for model, profiles in by_model.items()}


def differing() -> dict[str, list[tuple[str, str, str]]]:
    """By model without vendor and route: what differs, theirs and ours."""
    ours = advice_on_snapshot()
    found = {}
    for words in load_snapshots()[0].recommendations:
        parted = list_disagreements(
            ours[words.model], published_verdict=words.recommended, published_profile=words.profile
        )
        name = words.model.partition("/")[2].partition(":")[0]
        found[name] = [(item.about, item.published, item.recommended) for item in parted]
    return {name: parted for name, parted in found.items() if parted}


def test_which_of_our_verdicts_differ_from_the_published_ones() -> None:
    verdicts = {name: pair for name, parted in differing().items() for about, *pair in parted if about == "verdict"}
    assert verdicts == {
        "gpt-5.2": ["Yes", "Conditional"],
        "minimax-m2-her": ["No (for tool calling)", "Not applicable"],
        "gemini-2.5-flash": ["Yes", "Conditional"],
    }


def test_a_profile_is_preferred_only_where_intervals_lie_apart() -> None:
    profiles = {name: pair for name, parted in differing().items() for about, *pair in parted if about == "profile"}
    assert all(ours == "default" for _, ours in profiles.values())
    assert "qwen3-235b-a22b-2507" not in profiles
    ours = {model: advice for model, advice in advice_on_snapshot().items()}
    assert ours["qwen/qwen3-235b-a22b-2507:nitro"].profile_rule == "best-interval"
    assert ours["deepseek/deepseek-v3.2:nitro"].profile_rule == "overlapping"


def test_every_difference_names_its_rule_and_reason() -> None:
    ours = advice_on_snapshot()
    for words in load_snapshots()[0].recommendations:
        for disagreement in list_disagreements(
            ours[words.model], published_verdict=words.recommended, published_profile=words.profile
        ):
            assert disagreement.reason.startswith("Rule ")
    assert ours["openai/gpt-5.2:nitro"].reason == (
        "39/40 [87–100] %: the target of 90 % lies inside the interval, so more trials are needed; 22 more trials at "
        "this rate would decide it."
    )


def test_forty_of_forty_overlaps_thirty_six_of_forty() -> None:
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
def test_the_first_rule_that_holds_gives_the_verdict(tried: ProfileResult, rule: str) -> None:
    assert recommend([tried], 0.9).rule == rule


def test_rules_have_names_of_their_own() -> None:
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
def test_the_trials_that_are_told_decide_where_they_are_told(name: str) -> None:
    parts, words = SHORT[name]
    count = sum(int(part.n) for part in parts)
    advice = recommend(
        [ProfileResult("m", "p", count, count, count, end_to_end_by_scenario=parts, scenarios=SCENARIOS)], 0.9
    )
    assert advice.rule == "undecided"
    assert words in advice.reason
    total = re.search(r"; ([0-9,]+) more trial", advice.reason)
    places = [place for place, scenario in enumerate(SCENARIOS) if scenario in advice.reason] or [0, 1, 2]
    assert total
    each = int(total[1].replace(",", "")) // len(places)

    def low(more: int) -> float:
        grown = [
            ScenarioSample(p.k + more, p.n + more, p.stopping, p.clustered) if n in places else p
            for n, p in enumerate(parts)
        ]
        return pool_samples(grown).low

    assert low(each) >= 0.9 > low(each - 1)
