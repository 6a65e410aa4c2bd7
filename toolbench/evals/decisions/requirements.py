"""Assessment of a configuration by a decision rule: bounds, p95, and the requirements that it fails.

REQUIREMENT_CHECKS lists the requirements, with the names that pages, exports and decision records use.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from toolbench.evals.decisions.assessments import (
    CHEAPEST,
    OPEN,
    REFUSED,
    TO_CONFIRM,
    Assessment,
    DecisionRule,
    MeasuredConfig,
    Reason,
    TrialShortfall,
)
from toolbench.evals.statistics import Z, compute_quantile
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import count_trials_per_scenario, list_sets_to_enlarge
from toolbench.evals.statistics.quantiles import count_more_answers_for_bounds, count_more_answers_for_limit
from toolbench.evals.statistics.rounding import format_rounded, round_half_up

UNDECIDED, P95_UNKNOWN, P95_UNDECIDED = "undecided", "p95-unknown", "p95-undecided"
PRICE_ADVICE = (
    "enter a price in the settings of the model and run again, or add the list price to "
    "toolbench/evals/data/prices.json"
)
MAX_DECIMAL_PLACES = 4  # of a bound in a sentence

CheckRequirement = Callable[[Assessment, DecisionRule], str]  # returns a sentence, or "" if the requirement is met


def assess_config(measured: MeasuredConfig, rule: DecisionRule) -> Assessment:
    """Return the assessment of a configuration by a rule, with every requirement that it fails."""
    end_to_end_pool, answered_pool = measured.end_to_end_pool, measured.answered_pool
    p95 = compute_quantile(measured.times, 0.95) if measured.times and not measured.is_local else None
    assessment = Assessment(measured, end_to_end_pool.low, end_to_end_pool.high, answered_pool.low, p95)
    reasons = tuple(
        Reason(name, kind, sentence)
        for name, kind, check in REQUIREMENT_CHECKS
        if (sentence := check(assessment, rule))
    )
    open_names = [reason.name for reason in reasons if reason.kind == OPEN]
    return replace(assessment, reasons=reasons, shortfall=_find_shortfall(assessment, rule, open_names))


def count_passes_without_failure(target: float) -> int:
    """Return the smallest number of passes without a failure whose lower Wilson bound reaches `target`, a fraction."""
    return math.ceil(Z**2 * target / (1 - target))


def describe_end_to_end(measured: MeasuredConfig, rule: DecisionRule) -> str:
    """Return end-to-end success as text: successes/trials and the interval in percent, such as `18/20 [70–97]`."""
    low, high = (
        _format_bound(bound, rule.target) for bound in (measured.end_to_end_pool.low, measured.end_to_end_pool.high)
    )
    return f"{measured.end_to_end_successes}/{measured.tried} [{low}–{high}]"


def _format_bound(bound: float, target: float) -> str:
    """Return a bound in percent, with decimal places only if rounding would move it across the target."""
    percent = 100 * bound
    decimals = (
        places
        for places in range(MAX_DECIMAL_PLACES)
        if (round_half_up(percent, places) < 100 * target) == (bound < target)
    )
    return format_rounded(percent, next(decimals, MAX_DECIMAL_PLACES))


def _find_shortfall(assessment: Assessment, rule: DecisionRule, names: Sequence[str]) -> TrialShortfall | None:
    """Return the fewest trials that decide the open requirements with these names.

    If UNDECIDED is among them, it may suffice to add trials of the scenarios with the fewest trials. Otherwise trials
    of all scenarios are added.

    Returns:
        The shortfall; None without names, or if no number of trials decides.
    """
    subsets = list_sets_to_enlarge(assessment.measured.end_to_end_samples)
    candidate_subsets = subsets if UNDECIDED in names else subsets[-1:]
    computed = (_compute_shortfall(assessment, rule, names, subset) for subset in candidate_subsets)
    shortfalls = [shortfall for shortfall in computed if shortfall]
    return min(shortfalls, key=lambda shortfall: (shortfall.total, shortfall.per_scenario), default=None)


def _compute_shortfall(
    assessment: Assessment, rule: DecisionRule, names: Sequence[str], scenario_indices: tuple[int, ...]
) -> TrialShortfall | None:
    """Return the fewest trials of these scenarios that decide all the requirements.

    With more trials than that, a requirement may be open again. Hence the loop raises the number until it decides all
    of them at once.

    Returns:
        The shortfall; None without names, or if no number of trials decides one of the requirements.
    """
    count, next_count = -1, 0
    while count < next_count:
        count = next_count
        needed = [COUNTER_BY_REQUIREMENT[name](assessment, rule, scenario_indices, count) for name in names]
        known = [more for more in needed if more is not None]
        if not names or len(known) < len(needed):
            return None
        next_count = max(known)
    return TrialShortfall(scenario_indices, count)


def _count_more_passes(
    assessment: Assessment, rule: DecisionRule, scenario_indices: tuple[int, ...], at_least: int
) -> int | None:
    samples = assessment.measured.end_to_end_samples
    return _count_trials_cached(samples, rule.target, scenario_indices, at_least=at_least)


# An assessment asks twice: for the sentence of the reason and for the shortfall.
_count_trials_cached = lru_cache(maxsize=1024)(count_trials_per_scenario)


def _count_more_answers(
    assessment: Assessment, rule: DecisionRule, scenario_indices: tuple[int, ...], at_least: int
) -> int | None:
    """Return how many more trials each of the scenarios needs so that no bound of p95 is open."""
    more = count_more_answers_for_bounds(0.95, len(assessment.measured.times))
    return max(at_least, math.ceil(more / len(scenario_indices)))


def _count_answers_for_limit(
    assessment: Assessment, rule: DecisionRule, scenario_indices: tuple[int, ...], at_least: int
) -> int | None:
    """Return how many more trials each of the scenarios needs so that the upper bound of p95 is within the limit."""
    times, limit, count = assessment.measured.times, rule.within_ms, len(scenario_indices)
    if limit is None:
        return None
    more = count_more_answers_for_limit(times, 0.95, limit, at_least=at_least * count, step=count)
    return None if more is None else more // count


def describe_shortfall(shortfall: TrialShortfall, measured: MeasuredConfig) -> str:
    """Return the shortfall as text, such as `10 more trials of guard (2 so far)`.

    A list of several scenarios ends with a comma, since a verb follows.
    """
    samples, per_scenario, total = measured.end_to_end_samples, shortfall.per_scenario, shortfall.total
    trials = f"{total:,} more trial{'' if total == 1 else 's'}"
    if len(shortfall.scenario_indices) == len(samples):
        return f"{trials} ({per_scenario:,} of each scenario)" if len(samples) > 1 else trials
    names = measured.scenarios or tuple(f"scenario {number}" for number in range(1, len(samples) + 1))
    scenarios = [f"{names[index]} ({_describe_sample(samples[index])})" for index in shortfall.scenario_indices]
    if len(scenarios) == 1:
        return f"{trials} of {scenarios[0]}"
    return f"{trials}, {per_scenario:,} each of {', '.join(scenarios)},"


def _describe_sample(sample: ScenarioSample) -> str:
    return f"worth {sample.n:,} independent ones so far" if sample.clustered else f"{sample.n:,} so far"


def _check_tried(assessment: Assessment, rule: DecisionRule) -> str:
    return "" if assessment.measured.tried else "It has no trials, or none that apply."


def _check_scenarios(assessment: Assessment, rule: DecisionRule) -> str:
    missing = ", ".join(assessment.measured.missing_scenarios)
    return f"It was not tried on {missing}, which this decision counts." if missing else ""


def _check_repeats(assessment: Assessment, rule: DecisionRule) -> str:
    if not assessment.measured.has_repeated_answers:
        return ""
    return "Its repeats gave the same answers: they are not independent trials, so its success has no bounds."


def _check_unanswered(assessment: Assessment, rule: DecisionRule) -> str:
    """Return the reason if answered success reaches the target by its lower bound, but end-to-end success does not."""
    measured = assessment.measured
    is_only_answered = assessment.low < rule.target <= assessment.answered_low
    if not is_only_answered or (measured.answered == measured.tried and not measured.retried_passes):
        return ""
    retried = (("passed only after a manual retry", measured.retried_passes),) if measured.retried_passes else ()
    causes = ", ".join(f"{name} × {count}" for name, count in (*measured.infra_errors, *retried)) or "trial deadline"
    return (
        f"It has too many trials without an answer: {_count_unanswered(measured)} of {measured.tried} "
        f"({causes}). End-to-end success is {describe_end_to_end(measured, rule)} %, "
        f"and its lower bound is below {format_rounded(rule.success)} %; "
        f"of the answers, {measured.passed}/{measured.answered} passed."
    )


def _count_unanswered(measured: MeasuredConfig) -> int:
    return measured.tried - measured.answered + measured.retried_passes


def _check_success(assessment: Assessment, rule: DecisionRule) -> str:
    if not assessment.measured.tried or assessment.high >= rule.target or _check_unanswered(assessment, rule):
        return ""
    bounds = describe_end_to_end(assessment.measured, rule)
    target = format_rounded(rule.success)
    return f"It passes too rarely: end-to-end success is {bounds} %, and the whole interval is below {target} %."


def _check_decided(assessment: Assessment, rule: DecisionRule) -> str:
    measured, target = assessment.measured, format_rounded(rule.success)
    if not measured.tried or not assessment.low < rule.target <= assessment.high or _check_unanswered(assessment, rule):
        return ""
    bounds = describe_end_to_end(measured, rule)
    opening = f"It is not decided: end-to-end success is {bounds} %, and {target} % lies inside the interval."
    shortfall = _find_shortfall(assessment, rule, [UNDECIDED])
    if shortfall is None:
        return f"{opening} At the observed share, no number of trials would raise its lower bound to {target} %."
    sentence = f"{opening} {describe_shortfall(shortfall, measured)} at this rate would decide it"
    if measured.end_to_end_successes == measured.tried and _is_plain_count(measured):
        needed = count_passes_without_failure(rule.target)
        return f"{sentence}: {needed} passes without a failure are needed for {target} %."
    return f"{sentence}."


def _is_plain_count(measured: MeasuredConfig) -> bool:
    """Return whether every scenario has the same fixed number of independent trials.

    Then the bounds depend only on the sums of passes and trials.
    """
    samples = measured.end_to_end_samples
    is_balanced = len({sample.n for sample in samples}) == 1
    return is_balanced and not measured.end_to_end_pool.error and not any(sample.clustered for sample in samples)


def _check_local(assessment: Assessment, rule: DecisionRule) -> str:
    if not (rule.uses_p95 and assessment.measured.is_local):
        return ""
    return "It shares this machine, so decisions do not use its latency."


def _check_p95_known(assessment: Assessment, rule: DecisionRule) -> str:
    if not rule.uses_p95 or assessment.measured.is_local or not assessment.measured.answered:
        return ""
    p95, answers = assessment.p95, len(assessment.measured.times)
    if p95 is None:
        return "Its p95 is not known: no answer has a time."
    if not p95.is_open or _check_p95(assessment, rule):
        return ""
    shortfall = _find_shortfall(assessment, rule, [P95_UNKNOWN])
    needed = describe_shortfall(shortfall, assessment.measured) if shortfall else ""
    answers_text = f"{answers} answer{'' if answers == 1 else 's'}"
    return f"The upper bound of its p95 is open with {answers_text}: it closes with {needed}."


def _check_p95(assessment: Assessment, rule: DecisionRule) -> str:
    p95, limit = assessment.p95, rule.within_ms
    if p95 is None or p95.low is None or limit is None or p95.low <= limit:
        return ""
    value, low = (format_rounded(milliseconds / 1000, 1) for milliseconds in (p95.value, p95.low))
    return f"It is too slow: p95 is {value} s with a lower bound of {low} s, and the limit is {limit / 1000:g} s."


def _check_p95_decided(assessment: Assessment, rule: DecisionRule) -> str:
    """Return the reason if only the upper bound of p95 exceeds the limit."""
    p95, limit = assessment.p95, rule.within_ms
    if p95 is None or p95.high is None or limit is None or p95.high <= limit or _check_p95(assessment, rule):
        return ""
    value, high = (format_rounded(milliseconds / 1000, 1) for milliseconds in (p95.value, p95.high))
    opening = (
        f"It is not decided: p95 is {value} s with an upper bound of {high} s, and the limit of {limit / 1000:g} s "
        "lies inside the interval."
    )
    shortfall = _find_shortfall(assessment, rule, [P95_UNDECIDED])
    if shortfall is None:
        return f"{opening} At the observed times, no number of trials would lower its upper bound to the limit."
    return f"{opening} {describe_shortfall(shortfall, assessment.measured)} at these times would decide it."


def _check_cost(assessment: Assessment, rule: DecisionRule) -> str:
    if rule.want != CHEAPEST or assessment.measured.cost is not None:
        return ""
    reason = f" ({assessment.measured.cost_from})" if assessment.measured.cost_from else ""
    return (
        f"Its cost is not known{reason}, so it cannot be compared with others. If the provider reports no cost, "
        f"{PRICE_ADVICE}."
    )


def _check_added_manually(assessment: Assessment, rule: DecisionRule) -> str:
    count = assessment.measured.added_manually
    return (
        f"{count} of its trials were added manually after results were seen: confirm it on new trials." if count else ""
    )


def _check_stopping(assessment: Assessment, rule: DecisionRule) -> str:
    if assessment.measured.end_to_end_pool.error is None:
        return ""
    return (
        "Its cells used sequential stopping: its bounds of success are anytime-valid, but those of time and cost are "
        "not. Confirm it on new trials."
    )


# The name of each requirement, the kind of the reason if it fails, and its check.
REQUIREMENT_CHECKS: tuple[tuple[str, str, CheckRequirement], ...] = (
    ("nothing", REFUSED, _check_tried),
    ("scenarios", REFUSED, _check_scenarios),
    ("repeats", REFUSED, _check_repeats),
    ("delivery", REFUSED, _check_unanswered),
    ("success", REFUSED, _check_success),
    (UNDECIDED, OPEN, _check_decided),
    ("local", REFUSED, _check_local),
    (P95_UNKNOWN, OPEN, _check_p95_known),
    (P95_UNDECIDED, OPEN, _check_p95_decided),
    ("p95", REFUSED, _check_p95),
    ("cost-unknown", REFUSED, _check_cost),
    ("by-hand", TO_CONFIRM, _check_added_manually),
    ("stopped", TO_CONFIRM, _check_stopping),
)

# For each requirement of kind OPEN, the function that counts the trials that each scenario of a subset lacks; None
# if no number would do. The last two arguments are the indices of the subset and the smallest number to return.
COUNTER_BY_REQUIREMENT: Mapping[str, Callable[[Assessment, DecisionRule, tuple[int, ...], int], int | None]] = {
    UNDECIDED: _count_more_passes,
    P95_UNKNOWN: _count_more_answers,
    P95_UNDECIDED: _count_answers_for_limit,
}
