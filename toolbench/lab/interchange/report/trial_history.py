"""The case study's record of a trial, rebuilt from stored steps: history, trace and final draft."""

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
    """Return the messages of the last request, its answer and the results that followed.

    The result is None if the request has no readable messages, and empty if no request was sent.
    """
    asked = [one for one in steps if not one.is_tool]
    if not asked:
        return []
    last = asked[-1]
    request = parse_object(last.step.body.request)
    if request is None or not isinstance(request.get("messages"), list):
        return None
    answer = [last.facts["message"]] if isinstance(last.facts.get("message"), dict) else []
    results = [one for one in steps if one.is_tool and one.step.turn == last.step.turn]
    return [*request["messages"], *answer, *(_build_tool_message(one) for one in results)]


def _build_tool_message(one: StepWithDetails) -> Message:
    call_id = one.facts.get("call", {}).get("id")
    return {"role": "tool", "tool_call_id": call_id, "content": decode_text(one.step.body.response)}


def build_trace(steps: Sequence[StepWithDetails], policy: Policy | None) -> list[JsonObject]:
    """Return one entry for every turn that was answered."""
    answered = (one for one in steps if not one.is_tool and one.step.ok)
    return [_build_trace_entry(one, steps, policy) for one in answered]


def _build_trace_entry(one: StepWithDetails, steps: Sequence[StepWithDetails], policy: Policy | None) -> JsonObject:
    results = [tool for tool in steps if tool.is_tool and tool.step.turn == one.step.turn]
    entry: JsonObject = {
        "turn": one.step.turn,
        "request": _summarise_request(one, policy),
        "response_summary": _summarise_response(one),
    }
    if results:
        entry["tool_calls"] = [_summarise_call(tool) for tool in results]
        entry["tool_results"] = [_summarise_result(tool) for tool in results]
    return entry


def _summarise_request(one: StepWithDetails, policy: Policy | None) -> JsonObject:
    request = parse_object(one.step.body.request) or {}
    return {
        "model": request.get("model"),
        "messages_count": _count_items(request.get("messages")),
        "tools_count": _count_items(request.get("tools")),
        "tool_use_mode": policy.tool_use_mode if policy else None,
        "tool_failure_policy": policy.tool_failure_policy if policy else None,
        **{name: list(getattr(policy, name)) if policy else None for name in TRANSFORM_KEYS},
    }


def _summarise_response(one: StepWithDetails) -> JsonObject:
    calls = one.facts.get("calls", ())
    text = str(one.facts.get("text") or "")
    response = parse_object(one.step.body.response) or {}
    return {
        "has_tool_calls": bool(calls),
        "tool_calls_count": len(calls),
        "ignored_tool_calls_count": one.facts.get("ignored_calls", 0),
        "usage": response.get("usage"),
        "finish_reason": one.step.finish_reason or None,
        "assistant_content_stripped": False,
        "assistant_content_sample": text[:200] if calls and text.strip() else None,
    }


def _summarise_call(one: StepWithDetails) -> JsonObject:
    call = one.facts.get("call", {})
    return {"id": call.get("id"), "name": call.get("name"), "arguments_bytes": len(bytes(one.step.body.request))}


def _summarise_result(one: StepWithDetails) -> JsonObject:
    call, envelope = one.facts.get("call", {}), one.facts.get("envelope", {})
    codes = [error.get("code") for error in envelope.get("errors", ())]
    return {"id": call.get("id"), "name": call.get("name"), "ok": envelope.get("ok"), "error_codes": codes}


def rebuild_final_draft(trial: Trial, steps: Sequence[StepWithDetails]) -> Any:
    """Return the draft in the workspace at the end of a trial.

    The stored calls are run again on the same instance. The result is None if there is no draft, or if this version of
    the scenario is not available.
    """
    if not is_version_available(trial.scenario, trial.scenario_version):
        return None
    scenario = load_scenario(trial.scenario, trial.scenario_version)
    workspace = scenario.open(scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind))
    for one in steps:
        if one.is_tool and one.facts.get("executed") and isinstance(one.facts.get("arguments"), dict):
            name = one.facts.get("envelope", {}).get("tool_name") or one.step.tool_name
            with suppress(Exception):  # it failed in the trial as well
                workspace.call(name, one.facts["arguments"], one.facts.get("call", {}).get("id", ""))
    return workspace.snapshot().get("draft")


def _count_items(value: object) -> int:
    return len(value) if isinstance(value, list) else 0
