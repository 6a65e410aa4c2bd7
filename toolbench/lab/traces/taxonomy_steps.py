"""Conversion of stored steps to the `WireStep` objects from which causes are classified."""

from collections.abc import Sequence
from typing import Any

from toolbench.engine.events import ToolResult
from toolbench.engine.types import (
    Envelope,
    Finding,
    JsonObject,
    ParseError,
    SchemaError,
    ToolCall,
    TransformChange,
    Turn,
)
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.lab.models import Step, StepBody
from toolbench.lab.traces.step_facts import build_stored, load_details


def load_wire_steps(trial_ids: Sequence[int]) -> dict[int, tuple[WireStep, ...]]:
    """Return the steps of the current execution of each trial, by trial id, with one query.

    Request and response bodies are not loaded. A trial without steps is missing in the result. If the bodies of a trial
    were removed, its exchanges have no answers, and its calls have empty results that count as failed.
    """
    step_bodies = StepBody.objects.filter(step__trial_id__in=trial_ids).select_related("step", "step__trial")
    step_bodies = step_bodies.order_by("step__trial_id", "step__ordinal").only(
        "facts", "step__trial__execution", *(f"step__{name}" for name in _STEP_COLUMNS)
    )
    steps: dict[int, list[WireStep]] = {}
    for body in step_bodies.iterator(chunk_size=500):
        if body.step.execution == body.step.trial.execution:
            steps.setdefault(body.step.trial_id, []).append(_build_wire_step(body.step, load_details(body.facts)))
    return {trial_id: tuple(trial_steps) for trial_id, trial_steps in steps.items()}


_STEP_COLUMNS = ("trial", "execution", "ordinal", "turn", "kind", "error_code", "finish_reason", "path", "ok")


def _build_wire_step(step: Step, facts: JsonObject) -> WireStep:
    if step.kind == Step.Kind.TOOL:
        return ToolRun(step.ordinal, step.turn, _build_tool_result(facts))
    error: JsonObject = facts.get("error") or {}
    return ExchangeAttempt(
        step.ordinal,
        step.turn,
        bool(facts.get("tools_sent")),
        _build_turn(step, facts) if step.ok and "text" in facts else None,
        str(error.get("code") or step.error_code),
        bool(error.get("tool_support")),
    )


def _build_turn(step: Step, facts: JsonObject) -> Turn:
    return Turn(
        message=facts.get("message") or {},
        text=facts.get("text") or "",
        calls=_build_calls(facts.get("calls")),
        calls_found=_build_calls(facts.get("calls_found")),
        ignored_call_count=facts.get("ignored_calls") or 0,
        finish_reason=step.finish_reason or None,
        method_used=step.path,
        changes=tuple(build_stored(TransformChange, change) for change in facts.get("response_changes") or ()),
        findings=tuple(build_stored(Finding, finding) for finding in facts.get("findings") or ()),
        parse_errors=tuple(build_stored(ParseError, error) for error in facts.get("parse_errors") or ()),
        mode=facts.get("mode") or "",
    )


def _build_tool_result(facts: JsonObject) -> ToolResult:
    envelope = {"ok": False, "tool_name": ""} | (facts.get("envelope") or {})
    call: JsonObject = facts.get("call") or {}
    return ToolResult(
        call=ToolCall(str(call.get("id") or ""), str(call.get("name") or ""), call.get("arguments")),
        arguments=facts.get("arguments"),
        parse_status=facts.get("parse_status") or "",
        envelope=build_stored(Envelope, envelope),
        content="",
        was_executed=bool(facts.get("executed")),
        schema_errors=tuple(build_stored(SchemaError, error) for error in facts.get("schema_errors") or ()),
        is_output_replaced=bool(facts.get("output_replaced")),
    )


def _build_calls(calls: Any) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(str(call["id"]), str(call["name"]), call.get("arguments")) for call in calls or ())
