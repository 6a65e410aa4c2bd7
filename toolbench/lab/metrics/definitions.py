"""Metrics of a row: rates with their denominators, and figures as ranges.

docs/metrics.md explains each with an example.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from toolbench.evals import metrics as formulas
from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.times import MIN_LEGACY_P95_ANSWERS, Times, find_value_range
from toolbench.lab.metrics.values import UNKNOWN, Figure, Metric, MetricInput


def compute_tokens_per_trial(tally: Tally) -> Figure | None:
    """Compute input and output tokens per trial; None where they are unknown."""
    return _compute_per_trial(tally, tally.input_tokens + tally.output_tokens)


def compute_cost_per_success(tally: Tally) -> Figure | None:
    """Compute dollars per delivered success, failed and retried requests included.

    Returns:
        None where the cost of a trial is unknown or nothing was delivered.
    """
    return _build_single_figure(
        formulas.compute_cost_per_success(tally.cost, tally.passed - tally.late_passes), "dollars"
    )


def _build_rate(k: str, *n: str) -> Callable[[Tally, float | None], Rate]:
    """Build the rate of one count in the sum of others, by their names in Tally."""

    def rate(tally: Tally, target: float | None) -> Rate:
        return tally.rate(getattr(tally, k), sum(getattr(tally, name) for name in n), target)

    return rate


def _build_request_rate(k: str) -> Callable[[Tally, float | None], Rate | None]:
    """Build the rate of one count in the requests; it gives None where the count is unknown."""

    def rate(tally: Tally, target: float | None) -> Rate | None:
        return tally.rate(getattr(tally, k), tally.requests, target) if tally.retries_known else None

    return rate


def _compute_backoff(counted: MetricInput) -> Figure | None:
    known = counted.tools.requests and counted.tools.retries_known
    return _build_single_figure(counted.tools.backoff_ms if known else None, "ms")


def _compute_per_trial(tally: Tally, count: int) -> Figure | None:
    """Compute tokens per trial; None where cells that were set aside are missing from the sum."""
    return _build_single_figure(
        count / tally.tried if tally.tried and count and not tally.set_aside else None, "tokens"
    )


def _build_quantile_range(
    of: Callable[[Times], Quantile | None], least: int = 1
) -> Callable[[MetricInput], Figure | None]:
    """Build the range of a quantile over scenarios with `least` answers or more."""

    def figure(counted: MetricInput) -> Figure | None:
        ends = find_value_range(counted.times, of, least=least)
        return None if ends is None else Figure(*ends, "ms")

    return figure


def _build_latency_metric(
    name: str, of: Callable[[Times], Quantile | None], figure: Callable[[MetricInput], Figure | None] | None = None
) -> Metric:
    return Metric(name, f"{name} latency", "trial without queue, tool scenarios", None, figure, of)


def _build_single_figure(value: float | None, unit: str) -> Figure | None:
    return None if value is None else Figure(value, value, unit)


def _build_scenario_mean(
    estimate: Callable[[int, int, int], float | None], k: int
) -> Callable[[MetricInput], Figure | None]:
    """Build the mean over scenarios with k answers or more; it gives None where repeats are not independent."""

    def figure(counted: MetricInput) -> Figure | None:
        values = [estimate(part.passed, part.answered, k) for part in counted.parts if not part.repeating]
        known = [value for value in values if value is not None]
        return _build_single_figure(sum(known) / len(known) if known else None, "share")

    return figure


def _compute_f1(counted: MetricInput) -> Figure | None:
    tally = add_tallies((counted.tools, counted.control))
    return _build_single_figure(
        formulas.compute_f1(tally.called_rightly, tally.called_needlessly, tally.call_missed), "share"
    )


def _build_violation_metric(kind: str, description: str) -> Metric:
    return Metric(
        f"{kind}_calls", f"Calls with {description}", "such calls / calls", _build_rate(f"{kind}_calls", "calls")
    )


def _build_pass_metrics(k: int) -> Iterable[Metric]:
    mean = f"over scenarios with {k} or more answers"
    yield Metric(
        f"pass_hat_{k}",
        f"pass^{k}",
        f"chance that {k} tries all pass, {mean}",
        None,
        _build_scenario_mean(formulas.compute_pass_hat, k),
    )
    yield Metric(
        f"pass_at_{k}",
        f"pass@{k}",
        f"chance that one of {k} tries passes, {mean}",
        None,
        _build_scenario_mean(formulas.compute_pass_at, k),
    )


_p50, _p95, _first_token = attrgetter("p50"), attrgetter("p95"), attrgetter("first_token")
_SUCCESS = (
    Metric("given", "Success given an answer", "passed / trials with an answer", Tally.answered_success, judged=True),
    Metric("delivered", "Delivered success", "passed / trials, infrastructure included", Tally.delivered, judged=True),
    Metric(
        "first",
        "First-attempt success",
        "passed without a second sample / answered",
        _build_rate("first_attempt_passed", "answered"),
        judged=True,
    ),
    Metric(
        "parity",
        "Success by the case study’s rule",
        "passed by its rule / answered where it has one",
        _build_rate("parity_passed", "parity_judged"),
        judged=True,
    ),
    Metric("control", "Control", "passed / control trials with an answer", Tally.answered_success, of_control=True),
    *_build_pass_metrics(3),
    *_build_pass_metrics(5),
    Metric(
        "turns",
        "Turn success",
        "turns with nothing wrong on the wire / turns with an answer",
        _build_rate("good_turns", "answered_turns"),
        judged=True,
    ),
    Metric(
        "recovery",
        "Recovery, given an error",
        "passed / trials with an answer in which a call failed",
        _build_rate("recovered_trials", "error_trials"),
        judged=True,
    ),
)
_CALLS = (
    Metric(
        "structured",
        "Structured-call rate",
        "structured calls / answers that called",
        _build_rate("structured_answers", "calling_answers"),
        judged=True,
    ),
    Metric(
        "fallback",
        "Fallback rate",
        "turns on text JSON / turns with an answer",
        _build_rate("fallback_turns", "answered_turns"),
    ),
    Metric("schema", "Schema accuracy", "valid calls / calls", _build_rate("valid_calls", "calls"), judged=True),
    Metric(
        "arguments",
        "Argument accuracy",
        "right arguments / valid calls whose right arguments are known",
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
        "turns with a parse error / turns that called",
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
        "such turns / turns that called",
        _build_rate("parse_error_ends", "calling_turns", "parse_error_ends"),
    ),
    Metric(
        "ignored",
        "Ignored calls",
        "calls left aside / calls made",
        _build_rate("ignored_calls", "calls", "ignored_calls"),
    ),
    Metric(
        "empty",
        "Empty finals",
        "blank after a result / answers without a call",
        _build_rate("empty_finals", "final_answers"),
    ),
)
_TRIGGER = (
    Metric(
        "trigger_precision",
        "Trigger precision",
        "called where a call was due / called",
        _build_rate("called_rightly", "called_rightly", "called_needlessly"),
        judged=True,
        with_control=True,
    ),
    Metric(
        "trigger_recall",
        "Trigger recall",
        "called / trials in which a call was due",
        _build_rate("called_rightly", "called_rightly", "call_missed"),
        judged=True,
        with_control=True,
    ),
    Metric("trigger_f1", "Trigger F1", "2 · rightly / (2 · rightly + needlessly + missed)", None, _compute_f1),
)
_SPENT = (
    Metric(
        "retried", "Retried requests", "requests sent again / requests", _build_request_rate("retries"), missing=UNKNOWN
    ),
    Metric(
        "answers_429",
        "Answers of 429",
        "rate-limited answers / requests",
        _build_request_rate("answers_429"),
        missing=UNKNOWN,
    ),
    Metric(
        "answers_5xx", "Answers of 5xx", "server errors / requests", _build_request_rate("answers_5xx"), missing=UNKNOWN
    ),
    Metric("backoff", "Back-off", "seconds waited before retries, all trials", None, _compute_backoff, missing=UNKNOWN),
    Metric("asked", "Asked again", "requests that quoted an error / requests", _build_rate("asked_again", "requests")),
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
        lambda counted: compute_tokens_per_trial(counted.tools),
    ),
    Metric(
        "cached",
        "Cached tokens per trial",
        "of the input, as the endpoint says",
        None,
        lambda counted: _compute_per_trial(counted.tools, counted.tools.cached_tokens),
    ),
    Metric(
        "reasoning",
        "Reasoning tokens per trial",
        "of the output, as the endpoint says",
        None,
        lambda counted: _compute_per_trial(counted.tools, counted.tools.reasoning_tokens),
    ),
    Metric(
        "cost",
        "Cost per delivered success",
        "all requests paid / delivered",
        None,
        lambda counted: compute_cost_per_success(counted.tools),
        missing=UNKNOWN,
    ),
)
GROUPS = {"Success": _SUCCESS, "Calls": _CALLS, "When to call": _TRIGGER, "Time, tokens, cost": _SPENT}
METRICS = {metric.name: metric for group in GROUPS.values() for metric in group}
