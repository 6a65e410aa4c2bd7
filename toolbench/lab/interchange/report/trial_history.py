"""History, trace and final draft of a trial in the form of the case study, rebuilt from stored steps."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject, Message
from toolbench.lab.interchange.file_json import decode_text, parse_object
from toolbench.lab.models import Trial
from toolbench.lab.scenarios.catalogue import is_version_available, load_scenario
from toolbench.lab.traces.reading import StepWithDetails

TRANSFORM_KEYS = (
    "message_transforms",
    "tool_transforms",
    "response_transforms",
    "tool_call_transforms",
    "tool_result_transforms",
)


def build_history(steps: Sequence[StepWithDetails]) -> list[Message] | None:
    """Return the messages of the last request, then its answer if it was read, then the tool results of the same turn.

    Returns:
        The messages; None if those of the request cannot be read; [] if no request was sent.
    """
    exchanges = [step for step in steps if not step.is_tool]
    if not exchanges:
        return []
    last = exchanges[-1]
    request = parse_object(last.step.body.request)
    if request is None or not isinstance(request.get("messages"), list):
        return None
    answers = [last.facts["message"]] if isinstance(last.facts.get("message"), dict) else []
    tool_steps = [step for step in steps if step.is_tool and step.step.turn == last.step.turn]
    return [*request["messages"], *answers, *(_build_tool_message(result) for result in tool_steps)]


def _build_tool_message(step: StepWithDetails) -> Message:
    call_id = step.facts.get("call", {}).get("id")
    return {"role": "tool", "tool_call_id": call_id, "content": decode_text(step.step.body.response)}


def build_trace(steps: Sequence[StepWithDetails], policy: Policy | None) -> list[JsonObject]:
    """Return a summary of the request, answer and calls of each successful exchange.

    Args:
        steps: all steps of the trial.
        policy: policy of the trial; if it is None, the settings in the entries are null.
    """
    successful_exchanges = (step for step in steps if not step.is_tool and step.step.ok)
    return [_build_trace_entry(step, steps, policy) for step in successful_exchanges]


def _build_trace_entry(step: StepWithDetails, steps: Sequence[StepWithDetails], policy: Policy | None) -> JsonObject:
    tool_steps = [tool for tool in steps if tool.is_tool and tool.step.turn == step.step.turn]
    entry: JsonObject = {
        "turn": step.step.turn,
        "request": _summarise_request(step, policy),
        "response_summary": _summarise_response(step),
    }
    if tool_steps:
        entry["tool_calls"] = [_summarise_call(tool) for tool in tool_steps]
        entry["tool_results"] = [_summarise_result(tool) for tool in tool_steps]
    return entry


def _summarise_request(step: StepWithDetails, policy: Policy | None) -> JsonObject:
    request = parse_object(step.step.body.request) or {}
    return {
        "model": request.get("model"),
        "messages_count": _count_items(request.get("messages")),
        "tools_count": _count_items(request.get("tools")),
        "tool_use_mode": policy.tool_use_mode if policy else None,
        "tool_failure_policy": policy.tool_failure_policy if policy else None,
        **{name: list(getattr(policy, name)) if policy else None for name in TRANSFORM_KEYS},
    }


def _summarise_response(step: StepWithDetails) -> JsonObject:
    calls = step.facts.get("calls", ())
    text = str(step.facts.get("text") or "")
    response = parse_object(step.step.body.response) or {}
    return {
        "has_tool_calls": bool(calls),
        "tool_calls_count": len(calls),
        "ignored_tool_calls_count": step.facts.get("ignored_calls", 0),
        "usage": response.get("usage"),
        "finish_reason": step.step.finish_reason or None,
        "assistant_content_stripped": False,
        "assistant_content_sample": text[:200] if calls and text.strip() else None,
    }


def _summarise_call(step: StepWithDetails) -> JsonObject:
    call = step.facts.get("call", {})
    return {"id": call.get("id"), "name": call.get("name"), "arguments_bytes": len(bytes(step.step.body.request))}


def _summarise_result(step: StepWithDetails) -> JsonObject:
    call, envelope = step.facts.get("call", {}), step.facts.get("envelope", {})
    codes = [error.get("code") for error in envelope.get("errors", ())]
    return {"id": call.get("id"), "name": call.get("name"), "ok": envelope.get("ok"), "error_codes": codes}


def rebuild_final_draft(trial: Trial, steps: Sequence[StepWithDetails]) -> Any:
    """Return the draft that the tools of the scenario edited, as it was at the end of a trial.

    The stored calls are executed again in a new workspace of the same instance.

    Returns:
        The draft; None if the workspace has no draft, or if this version of the scenario is not available.
    """
    if not is_version_available(trial.scenario, trial.scenario_version):
        return None
    scenario = load_scenario(trial.scenario, trial.scenario_version)
    workspace = scenario.open(scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind))
    for step in steps:
        if step.is_tool and step.facts.get("executed") and isinstance(step.facts.get("arguments"), dict):
            name = step.facts.get("envelope", {}).get("tool_name") or step.step.tool_name
            with suppress(Exception):  # a call that failed in the trial fails again
                workspace.call(name, step.facts["arguments"], step.facts.get("call", {}).get("id", ""))
    return workspace.snapshot().get("draft")


def _count_items(value: object) -> int:
    return len(value) if isinstance(value, list) else 0
