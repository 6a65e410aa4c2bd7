"""Tests of the sentence on the best configuration: the reason against it, and the number of trials needed."""

import math
from dataclasses import replace
from typing import Any

import pytest

from toolbench.evals.decisions.assessments import (
    DECISION_GOALS,
    Assessment,
    DecisionRule,
    IntervalEstimate,
    MeasuredConfig,
    TrialShortfall,
)
from toolbench.evals.decisions.choice import Decision, choose_config
from toolbench.evals.decisions.requirements import REQUIREMENT_CHECKS, assess_config
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign

CHEAP, DEAR = IntervalEstimate(0.001, 0.0009, 0.0011), IntervalEstimate(0.1, 0.09, 0.11)
GOALS = {"cheapest": "cheapest", "fastest": "fastest", "reliable": "most reliable"}


def build_measured(name: str = "A", passed: int = 100, tried: int = 100, **fields: Any) -> MeasuredConfig:
    answered = fields.setdefault("answered", tried)
    fields.setdefault("times", [1000.0 + index for index in range(answered)])
    fields.setdefault("cost", CHEAP)
    return MeasuredConfig(name, name, passed, tried, **fields)


def add_passes(before: MeasuredConfig, shortfall: TrialShortfall) -> MeasuredConfig:
    """Return the configuration after the missing passes, each as fast as its first trial."""
    parts = tuple(
        ScenarioSample(p.k + shortfall.per_scenario, p.n + shortfall.per_scenario, p.stopping, p.clustered)
        if index in shortfall.scenario_indices
        else p
        for index, p in enumerate(before.end_to_end_samples)
    )
    more = shortfall.total
    times = [*before.times, *([before.times[0]] * more)]
    return replace(
        before, passed=before.passed + more, tried=before.tried + more, answered=before.answered + more, times=times,
        end_to_end_by_scenario=parts,
    )  # fmt: skip


CASE_BY_OBSTACLE: dict[str, tuple[MeasuredConfig, str]] = {
    "too few trials": (
        build_measured(passed=20, tried=20),
        "It is not decided: end-to-end success is 20/20 [84–100] %, and 90 % lies inside the interval.",
    ),
    "open p95 bound": (
        build_measured(passed=40, tried=40),
        "p95 is open with 40 answers: it closes with 32 more trials.",
    ),
    "interval around the target": (build_measured(passed=94), "not decided: end-to-end success is 94/100 [88–97] %"),
    "share below the target": (build_measured(passed=88), "At the observed share, no number of trials would raise"),
    "interval below the target": (
        build_measured(passed=50),
        "passes too rarely: end-to-end success is 50/100 [40–60] %",
    ),
    "p95 over the limit": (
        build_measured(times=[30_000.0] * 100),
        "It is too slow: p95 is 30.0 s with a lower bound of 30.0 s, and the limit is",
    ),
    "p95 around the limit": (
        build_measured(times=[1000.0] * 97 + [30_000.0] * 3),
        "It is not decided: p95 is 1.0 s with an upper bound of 30.0 s, and the limit of 20 s lies inside the "
        "interval. 365 more trials at these times",
    ),
    "p95 over the limit, open": (
        build_measured(passed=40, tried=40, times=[30_000.0] * 40),
        "It is too slow: p95 is 30.0 s with a lower bound of 30.0 s, and the limit is 20 s.",
    ),
    "infrastructure share": (
        build_measured(passed=85, answered=85, infra_errors=(("rate_limited", 15),)),
        "It has too many trials without an answer: 15 of 100 (rate_limited × 15).",
    ),
    "distinct answers": (build_measured(has_repeated_answers=True), "Its repeats gave the same answers"),
    "missing scenario": (build_measured(missing_scenarios=("guard",)), "It was not tried on guard"),
    "added manually": (build_measured(added_manually=3), "3 of its trials were added manually"),
    "stopped when decided": (
        build_measured(end_to_end_by_scenario=(ScenarioSample(100, 100, StoppingDesign(0.05)),)),
        "used sequential stopping",
    ),
    "local model": (build_measured(is_local=True), "It shares this machine, so decisions do not use its latency."),
}


@pytest.mark.parametrize("goal", DECISION_GOALS)
@pytest.mark.parametrize("name", CASE_BY_OBSTACLE)
def test_choose_config_sentence_names_the_obstacle_for_every_goal(goal: str, name: str) -> None:
    candidate, words = CASE_BY_OBSTACLE[name]
    decision = choose_config([candidate], DecisionRule(goal))
    sentence = decision.sentence
    if decision.verdict == "confirm":
        assert sentence == "A meets the rule, but has to be confirmed on new trials."
        sentence = " ".join(reason.sentence for reason in decision.assessments[0].reasons)
        assert decision.needs_confirmation
    else:
        assert sentence.startswith("No clear winner: no configuration qualifies. A comes closest to being the ")
        assert f"being the {GOALS[goal]}." in sentence
    assert words in sentence
    assert ("passes without a failure are needed" in sentence) == (name == "too few trials")


def test_requirement_checks_each_have_a_case_in_the_table() -> None:
    found = {
        reason.name
        for item, _ in CASE_BY_OBSTACLE.values()
        for reason in assess_config(item, DecisionRule("fastest")).reasons
    }
    tested_elsewhere = {"nothing", "cost-unknown"}
    assert found | tested_elsewhere == {name for name, _, _ in REQUIREMENT_CHECKS}


@pytest.mark.parametrize("goal", DECISION_GOALS)
def test_choose_config_nothing_tried_names_number_of_passes_needed(goal: str) -> None:
    nothing = build_measured(passed=0, tried=0, cost=None)
    assert choose_config([nothing], DecisionRule(goal)).sentence.endswith(
        "35 passes without a failure are needed for 90 %."
    )


def test_choose_config_cheapest_without_price_says_where_to_enter_it() -> None:
    decision = choose_config([build_measured("A", cost=None), build_measured("B", cost=None)], DecisionRule("cheapest"))
    assert "No price is known for any of the 2 measured configurations" in decision.sentence
    assert "toolbench/evals/data/prices.json" in decision.sentence
    assert decision.more is None


def test_choose_config_40_of_40_plans_32_trials_for_p95() -> None:
    decision = choose_config([build_measured(passed=40, tried=40)], DecisionRule("fastest"))
    assert "passes without a failure" not in decision.sentence
    assert decision.more
    assert decision.more.total == 32


def test_choose_config_closest_is_best_for_the_goal_not_the_surest() -> None:
    quick = build_measured("quick", 20, 20, cost=DEAR, times=[100.0] * 20)
    cheap = build_measured("cheap", 30, 30, times=[5000.0] * 30)
    sure = build_measured("sure", 62, 62, cost=IntervalEstimate(0.01, 0.009, 0.02), times=[9000.0] * 62)
    closest = {goal: choose_config([sure, cheap, quick], DecisionRule(goal, 95)).sentence for goal in DECISION_GOALS}
    assert "quick comes closest to being the fastest" in closest["fastest"]
    assert "cheap comes closest to being the cheapest" in closest["cheapest"]
    assert "sure comes closest to being the most reliable" in closest["reliable"]


def test_choose_config_refused_is_closest_only_if_none_is_open() -> None:
    refused, undecided = build_measured("refused", 10, times=[1.0] * 100), build_measured("open", 94)
    assert "open comes closest" in choose_config([refused, undecided], DecisionRule("fastest")).sentence
    assert (
        "refused comes closest to being the fastest. It passes too"
        in choose_config([refused], DecisionRule("fastest")).sentence
    )


CANNOT_QUALIFY = {
    "share below the target": build_measured(
        "beyond", 88, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 100
    ),
    "p95 over the limit, still open": build_measured(
        "beyond", 20, 20, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 18 + [30_000.0] * 2
    ),
    "interval below the target": build_measured(
        "beyond", 50, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 100
    ),
}


@pytest.mark.parametrize("goal", DECISION_GOALS)
@pytest.mark.parametrize("name", CANNOT_QUALIFY)
def test_choose_config_closest_is_one_that_more_trials_can_qualify(goal: str, name: str) -> None:
    beyond, hopeful = CANNOT_QUALIFY[name], build_measured("hopeful", 19, 20, cost=DEAR, times=[9000.0] * 20)
    decision = choose_config([beyond, hopeful], DecisionRule(goal))
    assert f"hopeful comes closest to being the {GOALS[goal]}." in decision.sentence
    assert "qualify." not in decision.sentence
    assert decision.more
    assert decision.more.assessments[0].measured is hopeful


@pytest.mark.parametrize("goal", DECISION_GOALS)
def test_choose_config_says_that_more_trials_cannot_qualify_any(goal: str) -> None:
    decision = choose_config(CANNOT_QUALIFY.values(), DecisionRule(goal))
    assert "beyond comes closest to being the" in decision.sentence
    assert decision.sentence.endswith("would not make any of the 3 that were tried qualify.")
    alone = choose_config([CANNOT_QUALIFY["share below the target"]], DecisionRule(goal))
    assert alone.sentence.endswith("More trials at the observed rates and times would not make it qualify.")


def test_choose_config_says_that_trials_cannot_qualify_faster_rival() -> None:
    decision = choose_config(
        [build_measured("sure", times=[5000.0] * 100), CANNOT_QUALIFY["share below the target"]],
        DecisionRule("fastest"),
    )
    assert decision.sentence.startswith(
        "Only sure qualifies. beyond would be faster and is not decided yet; more trials"
    )
    assert decision.more is None


SCENARIOS = [build_measured(passed=n, tried=n) for n in (1, 20, 34, 40, 71)] + [
    build_measured(passed=94),
    build_measured(times=[1000.0] * 97 + [30_000.0] * 3),
    build_measured(passed=58, tried=60),
    build_measured(passed=93, tried=97),
    build_measured(passed=40, tried=40, end_to_end_by_scenario=(ScenarioSample(10, 10),) * 4),
    build_measured(
        passed=57,
        tried=60,
        end_to_end_by_scenario=(ScenarioSample(29, 30), ScenarioSample(14, 15), ScenarioSample(14, 15)),
    ),
    build_measured(passed=44, tried=45, end_to_end_by_scenario=(ScenarioSample(30, 30), ScenarioSample(14, 15))),
    build_measured(passed=40, tried=40, end_to_end_by_scenario=(ScenarioSample(38, 38), ScenarioSample(2, 2))),
    build_measured(passed=60, tried=60, end_to_end_by_scenario=(ScenarioSample(55, 55), ScenarioSample(5, 5))),
    build_measured(
        passed=90, tried=90, end_to_end_by_scenario=(ScenarioSample(80, 80), ScenarioSample(5, 5), ScenarioSample(5, 5))
    ),
    build_measured(
        passed=100,
        tried=104,
        end_to_end_by_scenario=(ScenarioSample(50, 50), ScenarioSample(42, 45), ScenarioSample(8, 9)),
    ),
    build_measured(
        passed=60, tried=60, end_to_end_by_scenario=(ScenarioSample(30, 30), ScenarioSample(7, 7, clustered=True))
    ),
    build_measured(
        passed=80,
        tried=80,
        end_to_end_by_scenario=(ScenarioSample(12, 12, clustered=True), ScenarioSample(20, 20, clustered=True)),
    ),
    build_measured(
        passed=60,
        tried=60,
        end_to_end_by_scenario=(
            ScenarioSample(40, 40, StoppingDesign(0.05)),
            ScenarioSample(20, 20, StoppingDesign(0.05)),
        ),
    ),
]


@pytest.mark.parametrize("goal", DECISION_GOALS)
@pytest.mark.parametrize("candidate", SCENARIOS, ids=lambda config: f"{config.passed} of {config.tried}")
def test_assess_config_qualifies_after_the_missing_passes(goal: str, candidate: MeasuredConfig) -> None:
    rule = DecisionRule(goal, 90)
    before = assess_config(candidate, rule)
    assert before.state == "open"
    assert before.shortfall
    after = assess_config(add_passes(candidate, before.shortfall), rule)
    stopped = any(part.stopping.error is not None for part in candidate.end_to_end_samples)
    assert after.state == ("confirm" if stopped else "qualified")
    decision = choose_config([candidate], rule)
    assert decision.more
    assert decision.more.shortfall == before.shortfall


@pytest.mark.parametrize("passed", [1, 20, 34, 40, 71])
def test_assess_config_stays_open_with_one_pass_fewer_than_missing(passed: int) -> None:
    for rule in (DecisionRule("fastest", 90), DecisionRule("fastest", 95), DecisionRule("cheapest", 95, None)):
        before: Assessment = assess_config(build_measured(passed=passed, tried=passed), rule)
        if shortfall := before.shortfall:
            fewer = TrialShortfall(shortfall.scenario_indices, shortfall.per_scenario - 1)
            assert assess_config(add_passes(before.measured, fewer), rule).state == "open"


def test_assess_config_shortfall_decides_success_and_p95_at_once() -> None:
    """At these times 880 more trials would decide p95, and 946 success; with 946, p95 would be open again."""
    rule = DecisionRule("fastest", 92)
    before = assess_config(build_measured(passed=103, tried=110, times=[1000.0] * 106 + [30_000.0] * 4), rule)
    assert [reason.name for reason in before.reasons] == ["undecided", "p95-undecided"]
    assert before.shortfall
    tried = 110 + before.shortfall.total
    slow = math.ceil(tried * 4 / 110)
    passed = math.ceil(tried * 103 / 110)
    after = build_measured(passed=passed, tried=tried, times=[1000.0] * (tried - slow) + [30_000.0] * slow)
    assert before.shortfall.total == 950
    assert assess_config(after, rule).state == "qualified"


SHORT = DecisionRule("reliable", 90, None)


@pytest.mark.parametrize(("many", "few", "more"), [(38, 2, 10), (55, 5, 6)])
def test_choose_config_plans_trials_of_the_short_scenario_only(many: int, few: int, more: int) -> None:
    parts, tried = (ScenarioSample(many, many), ScenarioSample(few, few)), many + few
    candidate = build_measured(
        passed=tried, tried=tried, end_to_end_by_scenario=parts, scenarios=("happy_path", "guard")
    )
    decision = choose_config([candidate], SHORT)
    assert f"{more} more trials of guard ({few} so far) at this rate would decide it." in decision.sentence
    assert "passes without a failure" not in decision.sentence
    assert decision.more
    assert (decision.more.scenarios, decision.more.per_scenario, decision.more.total) == (("guard",), more, more)


CASE_BY_COUNTS = {
    "one scenario": ((ScenarioSample(20, 20),), True),
    "equally many": ((ScenarioSample(10, 10),) * 3, True),
    "unequal": ((ScenarioSample(12, 12), ScenarioSample(10, 10)), False),
    "clustered": ((ScenarioSample(20, 20, clustered=True),), False),
    "until decided": ((ScenarioSample(10, 10, StoppingDesign(0.05)),), False),
}


@pytest.mark.parametrize("name", CASE_BY_COUNTS)
def test_choose_config_names_passes_needed_only_for_plain_counts(name: str) -> None:
    parts, named = CASE_BY_COUNTS[name]
    tried = sum(part.n for part in parts)
    sentence = choose_config([build_measured(passed=tried, tried=tried, end_to_end_by_scenario=parts)], SHORT).sentence
    assert "at this rate would decide it" in sentence
    assert ("35 passes without a failure are needed" in sentence) == named


def test_choose_config_writes_one_answer_in_the_singular() -> None:
    assert (
        "p95 is open with 1 answer:"
        in choose_config([build_measured(passed=1, tried=1)], DecisionRule("fastest")).sentence
    )


def test_choose_config_share_below_target_plans_nothing() -> None:
    assert choose_config([build_measured(passed=88)], DecisionRule("fastest")).more is None


def test_choose_config_planned_trials_need_confirmation() -> None:
    def decided(planned: bool) -> Decision:
        return choose_config([build_measured(has_planned_trials=planned)], DecisionRule("fastest"))

    assert decided(True).needs_confirmation
    assert not decided(False).needs_confirmation


def test_choose_config_overlapping_leaders_plan_trials_for_both() -> None:
    parts = (ScenarioSample(25, 25),) * 4
    near = [
        build_measured(name, times=[base + n for n in range(100)], end_to_end_by_scenario=parts)
        for name, base in (("a", 3), ("b", 0))
    ]
    decision = choose_config(near, DecisionRule("fastest"))
    assert decision.more
    assert [assessment.measured.key for assessment in decision.more.assessments] == ["b", "a"]
    assert decision.more.total == 4 * decision.more.per_scenario
    assert f"{decision.more.total:,} more trials of each would decide it" in decision.sentence
