"""Columns of a finished trial, computed from its steps, the result of its loop and its verdict."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from toolbench.engine.bounds import parse_cost, parse_count
from toolbench.engine.events import LoopResult, TurnRecord
from toolbench.engine.light_dataclass import light
from toolbench.engine.policy.optional_parameters import REFUSAL_CODES
from toolbench.engine.types import JsonObject
from toolbench.evals import record_counts
from toolbench.evals.judging import verdict as judging
from toolbench.evals.types import ProblemLocation, Verdict
from toolbench.lab.traces.step_facts import to_column_json, to_column_text
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep

AnyStep = ExchangeStep | ToolStep


@light(frozen=True, slots=True)
class FinishedExecution:
    """One finished execution of a trial.

    Attributes:
        steps: the recorded steps in order.
        scenario: slug of the scenario.
        duration_ms: wall time from the start of the loop to the verdict. It includes back-off, but not waits for the
            rate control of the provider; 0 in a replay.
    """

    loop_result: LoopResult
    verdict: Verdict
    steps: Sequence[AnyStep]
    scenario: str
    duration_ms: float


def build_trial_columns(execution: FinishedExecution) -> JsonObject:
    """Return the columns of outcome, times, counts, tokens, server and omitted parameters, by name.

    Their values contain nothing that PostgreSQL refuses, such as NUL characters.
    """
    return {
        **_build_outcome_columns(execution),
        **_build_time_columns(execution),
        **_build_count_columns(execution),
        **_build_token_columns(execution.loop_result),
        **_build_server_columns(execution),
        "left_out": to_column_json(list_omitted_parameters(execution.steps)),
    }


def list_omitted_parameters(steps: Iterable[AnyStep]) -> list[JsonObject]:
    """Return the parameters that requests left out, as JSON, each with `why` and `known` of the last such request."""
    parameters = (
        parameter for step in steps if isinstance(step, ExchangeStep) for parameter in step.request.omitted_parameters
    )
    by_name = {
        parameter.name: {"name": parameter.name, "why": parameter.reason, "known": parameter.was_omitted_from_start}
        for parameter in parameters
    }
    return list(by_name.values())


def _build_outcome_columns(execution: FinishedExecution) -> JsonObject:
    verdict, loop_result = execution.verdict, execution.loop_result
    first_bad_path = verdict.first_bad.path if verdict.first_bad else ""
    return {
        "outcome": verdict.outcome,
        "task_pass": verdict.task_pass,
        "parity_pass": verdict.parity_pass,
        "end": loop_result.end.value,
        "failure_class": to_column_text(verdict.failure_class, 60),
        "category": to_column_text(verdict.category, 40),
        "sentence": to_column_text(verdict.sentence or ("" if verdict.task_pass else loop_result.message), 4000),
        "signature": build_failure_signature(verdict.failure_class, execution.scenario, first_bad_path),
        "behaviour_seen": verdict.behaviour_seen,
        "avoided": verdict.avoided,
        "verdict": to_column_json(verdict_to_json(verdict)),
        "first_bad_ordinal": find_first_bad_ordinal(verdict.first_bad, execution.steps),
        "final_text": loop_result.final_text.encode("utf-8", "surrogatepass").hex(),
        "error_hint": to_column_text(loop_result.error.hint if loop_result.error else "", 2000),
        "answer_hash": hash_answers(loop_result.turns),
    }


def build_failure_signature(failure_class: str, scenario: str, path: str) -> str:
    """Return the text by which failures are grouped: class, scenario and JSON path; "" without a failure class."""
    return to_column_text(f"{failure_class} · {scenario} · {path}", 200) if failure_class else ""


def verdict_to_json(verdict: Verdict) -> JsonObject:
    """Return the verdict as stored: rule, checks, first problem, counts and version of the judging rules."""
    first = verdict.first_bad
    return {
        "rule": verdict.rule,
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in verdict.checks],
        "first_bad": first and {"turn": first.turn, "call": first.call, "path": first.path, "sentence": first.sentence},
        "counts": verdict.counts,
        "judging": judging.VERSION,
    }


def find_first_bad_ordinal(location: ProblemLocation | None, steps: Iterable[AnyStep]) -> int | None:
    """Return the ordinal of the step with the first problem; None without a problem.

    The step is the tool execution of the call, or else the last exchange of the turn; None if the turn has neither.
    """
    if location is None:
        return None
    turn_steps = [step for step in steps if step.turn == location.turn]
    tool_ordinals = [step.ordinal for step in turn_steps if isinstance(step, ToolStep)]
    if location.call is not None and location.call < len(tool_ordinals):
        return tool_ordinals[location.call]
    exchange_ordinals = [step.ordinal for step in turn_steps if isinstance(step, ExchangeStep)]
    return exchange_ordinals[-1] if exchange_ordinals else None


def hash_answers(turns: Iterable[TurnRecord]) -> str:
    """Return the SHA-256 of the texts and calls of all answers, without the ids of calls; "" if there is no answer."""
    answers_json = [
        [
            turn.answer.text,
            [[result.call.name, _select_arguments(result.arguments, result.call.arguments)] for result in turn.results],
        ]
        for turn in turns
        if turn.answer is not None
    ]
    if not answers_json:
        return ""
    return hashlib.sha256(json.dumps(answers_json, sort_keys=True, default=str).encode("ascii")).hexdigest()


def _select_arguments(parsed: JsonObject | None, written: object) -> object:
    return written if parsed is None else parsed


def _build_time_columns(execution: FinishedExecution) -> JsonObject:
    exchanges = [step for step in execution.steps if isinstance(step, ExchangeStep)]
    return {
        "duration_ms": execution.duration_ms,
        "backoff_ms": sum(step.backoff_ms for step in exchanges),
        "model_ms": sum(step.duration_ms for step in exchanges),
        "tool_ms": sum(step.duration_ms for step in execution.steps if isinstance(step, ToolStep)),
        "first_byte_ms": next((step.first_byte_ms for step in exchanges if step.turn_read), None),
        "first_token_ms": next((step.first_token_ms for step in exchanges if step.turn_read), None),
        "first_call_ms": next((step.first_call_ms for step in exchanges if step.first_call_ms is not None), None),
        "requests": len(exchanges),
        "retries": sum(step.attempt > 1 for step in exchanges),
        "output_retries": _count_output_retries(exchanges) + execution.loop_result.reprompt_count,
        "asked_again": execution.loop_result.reprompt_count,
    }


def build_spending_columns(steps: Iterable[AnyStep]) -> JsonObject:
    """Return the columns of requests, tokens and cost, computed from the steps, for a trial without a verdict."""
    exchanges = [step for step in steps if isinstance(step, ExchangeStep)]
    usages = [step.turn_read.usage for step in exchanges if step.turn_read and step.turn_read.usage]
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return {
        "requests": len(exchanges),
        "retries": sum(step.attempt > 1 for step in exchanges),
        "input_tokens": parse_count(sum(usage.input_tokens or 0 for usage in usages)) or 0,
        "output_tokens": parse_count(sum(usage.output_tokens or 0 for usage in usages)) or 0,
        "cost": parse_cost(sum(costs)) if costs else None,
    }


def _count_output_retries(exchanges: Sequence[ExchangeStep]) -> int:
    """Count the attempts that follow an answer, valid or not, in the same turn: each is a new sample of the model."""
    return sum(
        after.turn == before.turn and (before.turn_read is not None or _is_model_output_error(before))
        for before, after in pairwise(exchanges)
    )


def _is_model_output_error(step: ExchangeStep) -> bool:
    """Return whether the model's output caused the error; False without an error, and for a refused request."""
    error = step.error
    return error is not None and not error.infrastructure and not error.tool_support and error.code not in REFUSAL_CODES


def _build_count_columns(execution: FinishedExecution) -> JsonObject:
    turns = execution.loop_result.turns
    answers = [turn.answer for turn in turns if turn.answer is not None]
    return {
        **execution.verdict.counts,
        "turns": len({turn.turn for turn in turns}),
        "not_executed": any(record_counts.has_call_attempt(answer) and not answer.calls_found for answer in answers),
    }


def _build_token_columns(loop_result: LoopResult) -> JsonObject:
    usage = loop_result.usage
    return {
        "input_tokens": parse_count(usage.input_tokens) or 0,
        "output_tokens": parse_count(usage.output_tokens) or 0,
        "cached_tokens": parse_count(usage.cached_tokens) or 0,
        "reasoning_tokens": parse_count(usage.reasoning_tokens) or 0,
        "cost": parse_cost(usage.cost),
    }


def _build_server_columns(execution: FinishedExecution) -> JsonObject:
    answers = [turn.answer for turn in execution.loop_result.turns if turn.answer is not None]
    return {
        "paths": ",".join(dict.fromkeys(answer.method_used for answer in answers))[:80],
        "upstream": _join_distinct((answer.upstream for answer in answers), 120),
        "fingerprint": _join_distinct((answer.fingerprint for answer in answers), 120),
        "model_echoed": _join_distinct((answer.model_echoed for answer in answers), 200),
    }


def _join_distinct(names: Iterable[str], limit: int) -> str:
    return to_column_text(", ".join(dict.fromkeys(name for name in names if name)), limit)
