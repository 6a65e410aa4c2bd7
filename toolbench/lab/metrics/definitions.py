"""Definitions of all metrics; docs/metrics.md explains each with an example.

Each metric is a rate with its denominator, a figure or a quantile of times.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from toolbench.evals import metrics as formulas
from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.cost import build_cost_sums, estimate_cost_per_success
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.times import MIN_LEGACY_P95_ANSWERS, Times, find_value_range
from toolbench.lab.metrics.values import UNKNOWN, Figure, Metric, MetricInput


def compute_tokens_per_trial(tally: Tally) -> Figure | None:
    """Compute input and output tokens per trial; None if the tokens are unknown or no trial was tried."""
    return _compute_per_trial(tally, tally.tried_tokens)


def compute_cost_per_success(tally: Tally) -> Figure | None:
    """Compute dollars per end-to-end success, failed and retried requests included.

    Returns:
        The figure; None if the cost of a trial is unknown or there is no end-to-end success.
    """
    estimate = estimate_cost_per_success(build_cost_sums(tally))
    return _build_single_figure(estimate.value if estimate else None, "dollars")


def _build_rate(numerator: str, *denominators: str) -> Callable[[Tally, float | None], Rate]:
    """Return a function that computes the rate of one count in the sum of others.

    Args:
        numerator: name of an attribute of Tally.
        denominators: names of attributes of Tally, whose sum is the denominator.
    """

    def compute(tally: Tally, target: float | None) -> Rate:
        return tally.build_rate(getattr(tally, numerator), sum(getattr(tally, name) for name in denominators), target)

    return compute


def _build_request_rate(numerator: str) -> Callable[[Tally, float | None], Rate | None]:
    """Return a function that computes the share of a retry count in the requests; None if unknown."""

    def compute(tally: Tally, target: float | None) -> Rate | None:
        return tally.build_rate(getattr(tally, numerator), tally.requests, target) if tally.retries_known else None

    return compute


def _compute_backoff(counts: MetricInput) -> Figure | None:
    is_known = counts.tools.requests and counts.tools.retries_known
    return _build_single_figure(counts.tools.backoff_ms if is_known else None, "ms")


def _compute_per_trial(tally: Tally, tokens: int) -> Figure | None:
    """Compute tokens per trial; None without trials, without tokens or if a cell could not be computed."""
    return _build_single_figure(
        tokens / tally.tried if tally.tried and tokens and not tally.uncomputed_cells else None, "tokens"
    )


def _build_quantile_range(
    get_quantile: Callable[[Times], Quantile | None], min_answers: int = 1
) -> Callable[[MetricInput], Figure | None]:
    """Return the function that computes the range of a quantile over scenarios with at least `min_answers` answers."""

    def compute(counts: MetricInput) -> Figure | None:
        value_range = find_value_range(counts.times, get_quantile, min_answers=min_answers)
        return None if value_range is None else Figure(*value_range, "ms")

    return compute


def _build_latency_metric(
    name: str,
    get_quantile: Callable[[Times], Quantile | None],
    figure: Callable[[MetricInput], Figure | None] | None = None,
) -> Metric:
    return Metric(name, f"{name} latency", "time of a trial without queue, tool scenarios", None, figure, get_quantile)


def _build_single_figure(value: float | None, unit: str) -> Figure | None:
    return None if value is None else Figure(value, value, unit)


def _build_scenario_mean(
    estimate: Callable[[int, int, int], float | None], k: int
) -> Callable[[MetricInput], Figure | None]:
    """Return the function that computes the mean of an estimate over scenarios with k answers or more.

    Scenarios whose repeats are not independent are left out; without other scenarios, the mean is None.
    """

    def compute(counts: MetricInput) -> Figure | None:
        values = [estimate(part.passed, part.answered, k) for part in counts.parts if not part.repeating_cells]
        known_values = [value for value in values if value is not None]
        return _build_single_figure(sum(known_values) / len(known_values) if known_values else None, "share")

    return compute


def _compute_f1(counts: MetricInput) -> Figure | None:
    tally = add_tallies((counts.tools, counts.control))
    return _build_single_figure(
        formulas.compute_f1(tally.called_rightly, tally.called_needlessly, tally.call_missed), "share"
    )


def _build_violation_metric(kind: str, description: str) -> Metric:
    return Metric(
        f"{kind}_calls", f"Calls with {description}", "such calls / calls", _build_rate(f"{kind}_calls", "calls")
    )


def _build_pass_metrics(k: int) -> Iterable[Metric]:
    scope = f"mean over scenarios with {k} or more answers"
    yield Metric(
        f"pass_hat_{k}",
        f"pass^{k}",
        f"probability that {k} trials all pass, {scope}",
        None,
        _build_scenario_mean(formulas.compute_pass_hat, k),
    )
    yield Metric(
        f"pass_at_{k}",
        f"pass@{k}",
        f"probability that at least one of {k} trials passes, {scope}",
        None,
        _build_scenario_mean(formulas.compute_pass_at, k),
    )


_p50, _p95, _first_token = attrgetter("p50"), attrgetter("p95"), attrgetter("first_token")
_SUCCESS = (
    Metric(
        "given",
        "Answered success",
        "passed / trials with an answer",
        Tally.compute_answered_success,
        judged=True,
    ),
    Metric(
        "delivered",
        "End-to-end success",
        "passed / trials, infrastructure errors included",
        Tally.compute_end_to_end_success,
        judged=True,
    ),
    Metric(
        "first",
        "First-attempt success",
        "passed without a second sample / trials with an answer",
        _build_rate("first_attempt_passed", "answered"),
        judged=True,
    ),
    Metric(
        "parity",
        "Success by the case study's rule",
        "passed by the case study's rule / trials with an answer that the rule judges",
        _build_rate("parity_passed", "parity_judged"),
        judged=True,
    ),
    Metric(
        "control", "Control", "passed / control trials with an answer", Tally.compute_answered_success, of_control=True
    ),
    *_build_pass_metrics(3),
    *_build_pass_metrics(5),
    Metric(
        "turns",
        "Turn success",
        "turns without a problem / turns with an answer",
        _build_rate("good_turns", "answered_turns"),
        judged=True,
    ),
    Metric(
        "recovery",
        "Recovery after a failed call",
        "passed / trials with an answer and a failed call",
        _build_rate("recovered_trials", "error_trials"),
        judged=True,
    ),
)
_CALLS = (
    Metric(
        "structured",
        "Structured-call rate",
        "answers with structured calls / answers with a call",
        _build_rate("structured_answers", "calling_answers"),
        judged=True,
    ),
    Metric(
        "fallback",
        "Fallback rate",
        "turns with text JSON / turns with an answer",
        _build_rate("fallback_turns", "answered_turns"),
    ),
    Metric("schema", "Schema accuracy", "valid calls / calls", _build_rate("valid_calls", "calls"), judged=True),
    Metric(
        "arguments",
        "Argument accuracy",
        "correct arguments / valid calls whose correct arguments are known",
        _build_rate("arguments_right", "arguments_asked"),
        judged=True,
    ),
    _build_violation_metric("missing", "a missing argument"),
    _build_violation_metric("type", "a wrong type"),
    _build_violation_metric("enum", "a value not allowed"),
    _build_violation_metric("range", "a value out of range"),
    _build_violation_metric("extra", "an unknown argument"),
    Metric(
        "parse",
        "Parse-error rate",
        "turns with a parse error / turns with a call",
        _build_rate("parse_error_turns", "calling_turns"),
    ),
    Metric(
        "repaired",
        "Repaired-call rate",
        "calls read after a named repair / calls",
        _build_rate("repaired_calls", "calls"),
    ),
    Metric(
        "ended",
        "Turns ended by a parse error",
        "such turns / turns with a call, these included",
        _build_rate("parse_error_ends", "calling_turns", "parse_error_ends"),
    ),
    Metric(
        "ignored",
        "Ignored calls",
        "ignored calls / calls made",
        _build_rate("ignored_calls", "calls", "ignored_calls"),
    ),
    Metric(
        "empty",
        "Empty finals",
        "blank answers after a result / answers without a call",
        _build_rate("empty_finals", "final_answers"),
    ),
)
_TRIGGER = (
    Metric(
        "trigger_precision",
        "Trigger precision",
        "trials with a call that was needed / trials with a call",
        _build_rate("called_rightly", "called_rightly", "called_needlessly"),
        judged=True,
        with_control=True,
    ),
    Metric(
        "trigger_recall",
        "Trigger recall",
        "trials with a call that was needed / trials that need a call",
        _build_rate("called_rightly", "called_rightly", "call_missed"),
        judged=True,
        with_control=True,
    ),
    Metric("trigger_f1", "Trigger F1", "2 · correct / (2 · correct + needless + missed)", None, _compute_f1),
)
_SPENT = (
    Metric(
        "retried", "Retried requests", "requests sent again / requests", _build_request_rate("retries"), missing=UNKNOWN
    ),
    Metric(
        "answers_429",
        "Answers with status 429",
        "rate-limited answers / requests",
        _build_request_rate("answers_429"),
        missing=UNKNOWN,
    ),
    Metric(
        "answers_5xx",
        "Answers with status 5xx",
        "server errors / requests",
        _build_request_rate("answers_5xx"),
        missing=UNKNOWN,
    ),
    Metric(
        "backoff",
        "Back-off",
        "seconds waited before retries, all trials of tool scenarios",
        None,
        _compute_backoff,
        missing=UNKNOWN,
    ),
    Metric("asked", "Re-prompts", "re-prompts / requests", _build_rate("asked_again", "requests")),
    _build_latency_metric("p50", _p50, _build_quantile_range(_p50)),
    _build_latency_metric("p95", _p95, _build_quantile_range(_p95, MIN_LEGACY_P95_ANSWERS)),
    _build_latency_metric("p99", attrgetter("p99")),
    Metric(
        "first_token",
        "Time to first token",
        "median of streamed trials, tool scenarios",
        None,
        _build_quantile_range(_first_token),
        _first_token,
    ),
    Metric(
        "tokens",
        "Tokens per trial",
        "input and output, all attempts",
        None,
        lambda counts: compute_tokens_per_trial(counts.tools),
    ),
    Metric(
        "cached",
        "Cached tokens per trial",
        "of the input, as the endpoint reports",
        None,
        lambda counts: _compute_per_trial(counts.tools, counts.tools.cached_tokens),
    ),
    Metric(
        "reasoning",
        "Reasoning tokens per trial",
        "of the output, as the endpoint reports",
        None,
        lambda counts: _compute_per_trial(counts.tools, counts.tools.reasoning_tokens),
    ),
    Metric(
        "cost",
        "Cost per end-to-end success",
        "cost of all requests / end-to-end successes",
        None,
        lambda counts: compute_cost_per_success(counts.tools),
        missing=UNKNOWN,
    ),
)
GROUPS = {"Success": _SUCCESS, "Calls": _CALLS, "When to call": _TRIGGER, "Time, tokens, cost": _SPENT}
METRICS = {metric.name: metric for group in GROUPS.values() for metric in group}
