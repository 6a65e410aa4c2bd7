"""Tests of the sentence on the best configuration: the reason against it, and the number of trials needed."""

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


def measured(name: str = "A", passed: int = 100, tried: int = 100, **fields: Any) -> MeasuredConfig:
    answered = fields.setdefault("answered", tried)
    fields.setdefault("times", [1000.0 + place for place in range(answered)])
    fields.setdefault("cost", CHEAP)
    return MeasuredConfig(name, name, passed, tried, **fields)


def with_passes(before: MeasuredConfig, lacking: TrialShortfall) -> MeasuredConfig:
    """The same after so many more passes, as quick as those before."""
    parts = tuple(
        ScenarioSample(p.k + lacking.per_scenario, p.n + lacking.per_scenario, p.stopping, p.clustered)
        if place in lacking.scenario_indices
        else p
        for place, p in enumerate(before.end_to_end_samples)
    )
    more = lacking.total
    times = [*before.times, *([before.times[0]] * more)]
    return replace(
        before, passed=before.passed + more, tried=before.tried + more, answered=before.answered + more, times=times,
        end_to_end_by_scenario=parts,
    )  # fmt: skip


OBSTACLES: dict[str, tuple[MeasuredConfig, str]] = {
    "too few trials": (
        measured(passed=20, tried=20),
        "Not decided: end-to-end success 20/20 [84–100] %, and 90 % lies inside.",
    ),
    "open p95 bound": (measured(passed=40, tried=40), "p95 is open with 40 answers: it closes with 32 more trials."),
    "interval around the target": (measured(passed=94), "Not decided: end-to-end success 94/100 [88–97] %"),
    "share below the target": (measured(passed=88), "At the observed share, no number of trials would lift"),
    "interval below the target": (measured(passed=50), "Passes too rarely: end-to-end success 50/100 [40–60] %"),
    "p95 over the limit": (measured(times=[30_000.0] * 100), "Too slow: p95 30.0 s, upper bound 30.0 s; the limit is"),
    "p95 over the limit, open": (
        measured(passed=40, tried=40, times=[30_000.0] * 40),
        "Too slow: p95 30.0 s, lower bound 30.0 s; the limit is 20 s.",
    ),
    "infrastructure share": (
        measured(passed=85, answered=85, infra_errors=(("rate_limited", 15),)),
        "Too many trials without an answer: 15 of 100 (rate_limited × 15).",
    ),
    "distinct answers": (measured(has_repeated_answers=True), "Its repeats gave the same answers"),
    "another task": (measured(missing_scenarios=("guard",)), "It was not tried on guard"),
    "added by hand": (measured(added_manually=3), "3 of its trials were added manually"),
    "stopped when decided": (
        measured(end_to_end_by_scenario=(ScenarioSample(100, 100, StoppingDesign(0.05)),)),
        "used sequential stopping",
    ),
    "local model": (measured(is_local=True), "It shares this machine, so decisions do not use its latency."),
}


@pytest.mark.parametrize("want", DECISION_GOALS)
@pytest.mark.parametrize("name", OBSTACLES)
def test_sentence_names_the_obstacle_for_every_goal(want: str, name: str) -> None:
    candidate, words = OBSTACLES[name]
    decision = choose_config([candidate], DecisionRule(want))
    told = decision.sentence
    if decision.verdict == "confirm":
        assert told == "A meets the rule, but has to be confirmed on new trials."
        told = " ".join(reason.sentence for reason in decision.assessments[0].reasons)
        assert decision.needs_confirmation
    else:
        assert told.startswith("No clear winner: no configuration qualifies. A comes closest to being the ")
        assert f"being the {GOALS[want]}." in told
    assert words in told
    assert ("passes without a failure are needed" in told) == (name == "too few trials")


def test_every_check_has_an_obstacle_in_the_table() -> None:
    found = {
        reason.name for item, _ in OBSTACLES.values() for reason in assess_config(item, DecisionRule("fastest")).reasons
    }
    apart = {"nothing", "cost-unknown"}
    assert found | apart == {name for name, _, _ in REQUIREMENT_CHECKS}


@pytest.mark.parametrize("want", DECISION_GOALS)
def test_nothing_tried_says_how_many_straight_passes(want: str) -> None:
    nothing = measured(passed=0, tried=0, cost=None)
    assert choose_config([nothing], DecisionRule(want)).sentence.endswith(
        "35 passes without a failure are needed for 90 %."
    )


def test_cheapest_without_any_price_says_where_to_enter_one() -> None:
    decision = choose_config([measured("A", cost=None), measured("B", cost=None)], DecisionRule("cheapest"))
    assert "No price is known of any of the 2 that was measured" in decision.sentence
    assert "toolbench/evals/data/prices.json" in decision.sentence
    assert decision.more is None


def test_forty_of_forty_is_not_asked_for_straight_passes() -> None:
    decision = choose_config([measured(passed=40, tried=40)], DecisionRule("fastest"))
    assert "passes without a failure" not in decision.sentence
    assert decision.more
    assert decision.more.total == 32


def test_closest_is_the_best_for_the_goal_and_not_the_surest() -> None:
    quick = measured("quick", 20, 20, cost=DEAR, times=[100.0] * 20)
    cheap = measured("cheap", 30, 30, times=[5000.0] * 30)
    sure = measured("sure", 62, 62, cost=IntervalEstimate(0.01, 0.009, 0.02), times=[9000.0] * 62)
    closest = {want: choose_config([sure, cheap, quick], DecisionRule(want, 95)).sentence for want in DECISION_GOALS}
    assert "quick comes closest to being the fastest" in closest["fastest"]
    assert "cheap comes closest to being the cheapest" in closest["cheapest"]
    assert "sure comes closest to being the most reliable" in closest["reliable"]


def test_refused_ones_are_closest_only_where_nothing_is_open() -> None:
    refused, undecided = measured("refused", 10, times=[1.0] * 100), measured("open", 94)
    assert "open comes closest" in choose_config([refused, undecided], DecisionRule("fastest")).sentence
    assert (
        "refused comes closest to being the fastest. Passes too"
        in choose_config([refused], DecisionRule("fastest")).sentence
    )


BEYOND = {
    "share below the target": measured("beyond", 88, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 100),
    "p95 over the limit, still open": measured(
        "beyond", 20, 20, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 18 + [30_000.0] * 2
    ),
    "interval below the target": measured(
        "beyond", 50, cost=IntervalEstimate(0.0001, 0.0001, 0.0001), times=[1.0] * 100
    ),
}


@pytest.mark.parametrize("want", DECISION_GOALS)
@pytest.mark.parametrize("name", BEYOND)
def test_closest_is_one_that_more_trials_would_lift(want: str, name: str) -> None:
    beyond, hopeful = BEYOND[name], measured("hopeful", 19, 20, cost=DEAR, times=[9000.0] * 20)
    decision = choose_config([beyond, hopeful], DecisionRule(want))
    assert f"hopeful comes closest to being the {GOALS[want]}." in decision.sentence
    assert "qualify." not in decision.sentence
    assert decision.more
    assert decision.more.assessments[0].measured is hopeful


@pytest.mark.parametrize("want", DECISION_GOALS)
def test_where_no_trials_would_lift_any_it_is_said(want: str) -> None:
    decision = choose_config(BEYOND.values(), DecisionRule(want))
    assert "beyond comes closest to being the" in decision.sentence
    assert decision.sentence.endswith("would not make any of the 3 that were tried qualify.")
    alone = choose_config([BEYOND["share below the target"]], DecisionRule(want))
    assert alone.sentence.endswith("More trials at the observed rates and times would not make it qualify.")


def test_a_better_one_that_trials_would_not_lift_is_told_so() -> None:
    decision = choose_config(
        [measured("sure", times=[5000.0] * 100), BEYOND["share below the target"]], DecisionRule("fastest")
    )
    assert decision.sentence.startswith(
        "Only sure qualifies. beyond would be faster and is not decided yet; more trials"
    )
    assert decision.more is None


SCENARIOS = [measured(passed=n, tried=n) for n in (1, 20, 34, 40, 71)] + [
    measured(passed=94),
    measured(passed=58, tried=60),
    measured(passed=93, tried=97),
    measured(passed=40, tried=40, end_to_end_by_scenario=(ScenarioSample(10, 10),) * 4),
    measured(
        passed=57,
        tried=60,
        end_to_end_by_scenario=(ScenarioSample(29, 30), ScenarioSample(14, 15), ScenarioSample(14, 15)),
    ),
    measured(passed=44, tried=45, end_to_end_by_scenario=(ScenarioSample(30, 30), ScenarioSample(14, 15))),
    measured(passed=40, tried=40, end_to_end_by_scenario=(ScenarioSample(38, 38), ScenarioSample(2, 2))),
    measured(passed=60, tried=60, end_to_end_by_scenario=(ScenarioSample(55, 55), ScenarioSample(5, 5))),
    measured(
        passed=90, tried=90, end_to_end_by_scenario=(ScenarioSample(80, 80), ScenarioSample(5, 5), ScenarioSample(5, 5))
    ),
    measured(
        passed=100,
        tried=104,
        end_to_end_by_scenario=(ScenarioSample(50, 50), ScenarioSample(42, 45), ScenarioSample(8, 9)),
    ),
    measured(
        passed=60, tried=60, end_to_end_by_scenario=(ScenarioSample(30, 30), ScenarioSample(7, 7, clustered=True))
    ),
    measured(
        passed=80,
        tried=80,
        end_to_end_by_scenario=(ScenarioSample(12, 12, clustered=True), ScenarioSample(20, 20, clustered=True)),
    ),
    measured(
        passed=60,
        tried=60,
        end_to_end_by_scenario=(
            ScenarioSample(40, 40, StoppingDesign(0.05)),
            ScenarioSample(20, 20, StoppingDesign(0.05)),
        ),
    ),
]


@pytest.mark.parametrize("want", DECISION_GOALS)
@pytest.mark.parametrize("candidate", SCENARIOS, ids=lambda one: f"{one.passed} of {one.tried}")
def test_after_the_missing_passes_the_obstacle_is_gone(want: str, candidate: MeasuredConfig) -> None:
    rule = DecisionRule(want, 90)
    before = assess_config(candidate, rule)
    assert before.state == "open"
    assert before.shortfall
    after = assess_config(with_passes(candidate, before.shortfall), rule)
    stopped = any(part.stopping.error is not None for part in candidate.end_to_end_samples)
    assert after.state == ("confirm" if stopped else "qualified")
    decision = choose_config([candidate], rule)
    assert decision.more
    assert decision.more.shortfall == before.shortfall


@pytest.mark.parametrize("passed", [1, 20, 34, 40, 71])
def test_one_pass_fewer_than_missing_leaves_the_obstacle(passed: int) -> None:
    for rule in (DecisionRule("fastest", 90), DecisionRule("fastest", 95), DecisionRule("cheapest", 95, None)):
        before: Assessment = assess_config(measured(passed=passed, tried=passed), rule)
        if lacking := before.shortfall:
            fewer = TrialShortfall(lacking.scenario_indices, lacking.per_scenario - 1)
            assert assess_config(with_passes(before.measured, fewer), rule).state == "open"


SHORT = DecisionRule("reliable", 90, None)


@pytest.mark.parametrize(("many", "few", "more"), [(38, 2, 10), (55, 5, 6)])
def test_a_short_scenario_is_named_and_planned_alone(many: int, few: int, more: int) -> None:
    parts, tried = (ScenarioSample(many, many), ScenarioSample(few, few)), many + few
    candidate = measured(passed=tried, tried=tried, end_to_end_by_scenario=parts, scenarios=("happy_path", "guard"))
    decision = choose_config([candidate], SHORT)
    assert f"{more} more trials of guard ({few} so far) at this rate would decide it." in decision.sentence
    assert "passes without a failure" not in decision.sentence
    assert decision.more
    assert (decision.more.scenarios, decision.more.per_scenario, decision.more.total) == (("guard",), more, more)


STRAIGHT = {
    "one scenario": ((ScenarioSample(20, 20),), True),
    "equally many": ((ScenarioSample(10, 10),) * 3, True),
    "unequal": ((ScenarioSample(12, 12), ScenarioSample(10, 10)), False),
    "clustered": ((ScenarioSample(20, 20, clustered=True),), False),
    "until decided": ((ScenarioSample(10, 10, StoppingDesign(0.05)),), False),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_straight_passes_are_named_only_where_their_sum_counts(name: str) -> None:
    parts, named = STRAIGHT[name]
    tried = sum(part.n for part in parts)
    sentence = choose_config([measured(passed=tried, tried=tried, end_to_end_by_scenario=parts)], SHORT).sentence
    assert "at this rate would decide it" in sentence
    assert ("35 passes without a failure are needed" in sentence) == named


def test_one_answer_is_written_in_the_singular() -> None:
    assert (
        "p95 is open with 1 answer:" in choose_config([measured(passed=1, tried=1)], DecisionRule("fastest")).sentence
    )


def test_a_share_that_would_never_do_plans_nothing() -> None:
    assert choose_config([measured(passed=88)], DecisionRule("fastest")).more is None


def test_planned_trials_make_a_lone_leader_to_be_confirmed() -> None:
    def decided(planned: bool) -> Decision:
        return choose_config([measured(has_planned_trials=planned)], DecisionRule("fastest"))

    assert decided(True).needs_confirmation
    assert not decided(False).needs_confirmation


def test_overlapping_leaders_plan_for_both() -> None:
    parts = (ScenarioSample(25, 25),) * 4
    near = [
        measured(name, times=[base + n for n in range(100)], end_to_end_by_scenario=parts)
        for name, base in (("a", 3), ("b", 0))
    ]
    decision = choose_config(near, DecisionRule("fastest"))
    assert decision.more
    assert [assessment.measured.key for assessment in decision.more.assessments] == ["b", "a"]
    assert decision.more.total == 4 * decision.more.per_scenario
    assert f"{decision.more.total:,} more trials of each would decide it" in decision.sentence
