"""Tests of recommendations by named rules, and of the reasons for differences from published ones."""

import re
from typing import Any

import pytest

from toolbench.evals.decisions.assessments import DecisionRule, MeasuredConfig
from toolbench.evals.decisions.recommendations import (
    CONDITIONAL,
    RECOMMENDATION_RULES,
    YES,
    ModelRecommendation,
    ProfileResult,
    has_overlap,
    list_disagreements,
    normalise_verdict,
    recommend,
)
from toolbench.evals.decisions.requirements import REQUIREMENT_CHECKS, assess_config
from toolbench.evals.published import load_snapshots
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign
from toolbench.evals.statistics.pooling import pool_samples

SUCCESS_ONLY = DecisionRule("reliable", 90, None)
IN_TIME = DecisionRule("reliable", 90, 20_000)


def build_result(
    passed: int,
    tried: int,
    answered: int | None = None,
    *,
    profile: str = "p",
    tools_off: bool = False,
    rule: DecisionRule = SUCCESS_ONLY,
    **fields: Any,
) -> ProfileResult:
    answered = tried if answered is None else answered
    assessment = assess_config(MeasuredConfig("m", profile, passed, tried, answered, **fields), rule)
    return ProfileResult("m", profile, assessment, is_tools_off=tools_off)


def recommend_for_snapshot() -> dict[str, ModelRecommendation]:
    by_model: dict[str, list[ProfileResult]] = {}
    for cell in load_snapshots()[0].cells:
        timeouts = sum(failure.count for failure in cell.failures if failure.name == "TIMEOUT")
        passed, tried = cell.tool
        result = build_result(passed, tried, tried - timeouts, profile=cell.profile, tools_off=cell.not_applicable)
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


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Yes", "Yes"),
        ("No (for tool calling)", "No"),
        ("Conditional: short prompts", "Conditional"),
        ("Not applicable", "Not applicable"),
        ("Not applicable (no tools)", "Not applicable"),
        ("Nothing to say", "Nothing to say"),
    ],
)
def test_normalise_verdict_compares_whole_words(text: str, verdict: str) -> None:
    assert normalise_verdict(text) == verdict


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


def test_recommend_names_only_the_profiles_that_overlap() -> None:
    profiles = [build_result(k, 40, profile=name) for name, k in (("default", 37), ("a", 38), ("far", 4))]
    advice = recommend(profiles, 0.9)
    assert (advice.result.profile, advice.profile_rule) == ("default", "overlapping")
    assert "overlaps a 38/40 [" in advice.profile_reason
    assert "far" not in advice.profile_reason


def test_list_disagreements_names_rule_and_reason_of_each() -> None:
    advice_by_model = recommend_for_snapshot()
    for words in load_snapshots()[0].recommendations:
        for disagreement in list_disagreements(
            advice_by_model[words.model], published_verdict=words.recommended, published_profile=words.profile
        ):
            assert disagreement.reason.startswith("Rule ")
    assert advice_by_model["openai/gpt-5.2:nitro"].reason == (
        "It is not decided: end-to-end success is 39/40 [87–100] %, and 90 % lies inside the interval. 22 more trials "
        "at this rate would decide it."
    )


def test_has_overlap_of_40_and_36_but_not_of_40_and_30_passes() -> None:
    best = build_result(40, 40)
    assert has_overlap(best, build_result(36, 40))
    assert not has_overlap(best, build_result(30, 40))


FAST, SLOW = [1_000.0] * 99, [30_000.0] * 99
RESULT_BY_RULE = {
    "tools-off": build_result(0, 40, tools_off=True),
    "no-trials": build_result(0, 0),
    "repeats": build_result(20, 40, has_repeated_answers=True),
    "below": build_result(20, 40),
    "infrastructure": build_result(60, 66, 60),
    "slow": build_result(99, 99, rule=IN_TIME, times=SLOW),
    "local": build_result(99, 99, rule=IN_TIME, is_local=True),
    "scenarios": build_result(99, 99, missing_scenarios=("guard",)),
    "undecided": build_result(36, 40),
    "to-confirm": build_result(99, 99, added_manually=1),
    "reaches-target": build_result(99, 99, rule=IN_TIME, times=FAST),
}


@pytest.mark.parametrize("rule", RESULT_BY_RULE)
def test_recommend_uses_the_first_rule_that_applies(rule: str) -> None:
    assert recommend([RESULT_BY_RULE[rule]], 0.9).rule == rule


REFUSED_RESULTS = (
    *(result for rule, result in RESULT_BY_RULE.items() if rule not in ("tools-off", "reaches-target")),
    build_result(99, 99, rule=IN_TIME, times=FAST[:40]),
    build_result(99, 99, rule=IN_TIME, times=FAST[:96] + SLOW[:3]),
    build_result(99, 99, end_to_end_by_scenario=(ScenarioSample(99, 99, StoppingDesign(0.05)),)),
)


def test_recommend_says_yes_to_nothing_that_a_decision_refuses() -> None:
    assert [result for result in REFUSED_RESULTS if recommend([result], 0.9).verdict == YES] == []
    found = {reason.name for result in REFUSED_RESULTS for reason in result.assessment.reasons}
    assert found | {"cost-unknown"} == {name for name, _, _ in REQUIREMENT_CHECKS}


REPEATING_PROFILES = {
    "default repeats": (("default", 0, 40, True), ("a", 99, 99, False)),
    "the best repeats": (("default", 36, 40, True), ("a", 99, 99, False), ("b", 99, 99, True)),
    "two do not repeat": (("default", 40, 40, True), ("a", 99, 99, False), ("c", 20, 40, False)),
}


@pytest.mark.parametrize("name", REPEATING_PROFILES)
def test_recommend_compares_no_profile_with_repeated_answers(name: str) -> None:
    rows = REPEATING_PROFILES[name]
    profiles = [build_result(k, n, profile=profile, has_repeated_answers=repeats) for profile, k, n, repeats in rows]
    advice = recommend(profiles, 0.9)
    rule = "best-interval" if name == "two do not repeat" else "only-interval"
    assert (advice.result.profile, advice.verdict, advice.profile_rule) == ("a", YES, rule)
    assert "without an interval" not in advice.profile_reason


@pytest.mark.parametrize(("other", "chosen"), [("b", "a"), ("default", "default")])
def test_recommend_compares_nothing_if_all_answers_were_repeated(other: str, chosen: str) -> None:
    profiles = [build_result(40, 40, profile=profile, has_repeated_answers=True) for profile in ("a", other)]
    advice = recommend(profiles, 0.9)
    assert (advice.result.profile, advice.rule, advice.profile_rule) == (chosen, "repeats", "no-interval")


@pytest.mark.parametrize("others", [[(4, 40)], [(4, 40), (20, 40)], [(4, 40), (0, 0)]])
def test_recommend_is_conditional_if_only_repeats_may_reach_target(others: list[tuple[int, int]]) -> None:
    profiles = [build_result(k, n, profile=f"other{k}") for k, n in others]
    advice = recommend([*profiles, build_result(40, 40, profile="repeats", has_repeated_answers=True)], 0.9)
    assert (advice.result.profile, advice.verdict, advice.rule) == ("repeats", CONDITIONAL, "repeats")
    assert advice.profile_rule == "no-interval"


@pytest.mark.parametrize("repeats", [True, False])
def test_recommend_leaves_out_profiles_without_tried_trials(repeats: bool) -> None:
    tried = build_result(38, 40, profile="tried", has_repeated_answers=repeats)
    advice = recommend([build_result(0, 0, profile="default"), tried], 0.9)
    assert (advice.result.profile, advice.profile_rule) == ("tried", "only")


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
    advice = recommend([build_result(count, count, end_to_end_by_scenario=parts, scenarios=SCENARIOS)], 0.9)
    assert advice.rule == "undecided"
    assert words in advice.reason
    total = re.search(r"inside the interval\. ([0-9,]+) more trial", advice.reason)
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
