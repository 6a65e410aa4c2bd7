"""Answers from a script in the real wire format, and a driver that runs the loop with them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.events import (
    Ask,
    Event,
    ExchangeError,
    FailedExchange,
    LoopResult,
    Outcome,
    PreparedCall,
    StopRun,
)
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject

OPS_SCHEMA = {
    "type": "array",
    "items": {"type": "object", "properties": {"op": {"type": "string"}}, "required": ["op"]},
}
PATCH_TOOL = ToolDefinition(
    "state_patch", "Changes it.", {"type": "object", "properties": {"ops": OPS_SCHEMA}, "required": ["ops"]}
)
GET_TOOL = ToolDefinition("state_get", "Reads it.", {"type": "object", "properties": {}, "required": []})
HIDDEN_TOOL = ToolDefinition("facts_commit", "Not for models.", {"type": "object"}, exposed_to_model=False)
TOOLS = ToolRegistry((GET_TOOL, PATCH_TOOL, HIDDEN_TOOL))

ScriptItem = bytes | ExchangeError | StopRun
CallTool = Callable[[PreparedCall], Outcome]


def build_answer(content: Any = "Done.", *, calls: Any = None, finish: str = "stop", **message: Any) -> bytes:
    """Return the body of an answer; `calls` becomes its `tool_calls` unchanged."""
    answer = {"role": "assistant", "content": content, **({} if calls is None else {"tool_calls": calls}), **message}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return json.dumps(
        {"model": "m-1", "choices": [{"message": answer, "finish_reason": finish}], "usage": usage}
    ).encode()


def build_call(name: str = "state_get", arguments: Any = "{}", call_id: Any = "c1") -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def build_calling_answer(*calls: JsonObject) -> bytes:
    return build_answer(None, calls=list(calls), finish="tool_calls")


def build_no_tool_support_error(status: int = 404) -> ExchangeError:
    message = "No endpoints found that support tool use"
    return ExchangeError("no_tool_use", message, status, infrastructure=False, tool_support=True)


def build_plan(user_text: str = "Go.", *, system: str = "", tools: ToolRegistry = TOOLS, **policy: Any) -> LoopPlan:
    """Return a plan whose policy is one layer above the engine's defaults."""
    return LoopPlan("m-1", resolve_policy([("test", policy)]).policy, system, user_text, tools=tools)


def return_success(_: PreparedCall) -> Outcome:
    return Outcome({"fine": True})


def return_failure(_: PreparedCall) -> Outcome:
    return Outcome(error_code="INTERNAL_ERROR", error_message="The tool failed.")


def use_in_order(*tools: CallTool) -> CallTool:
    """Return a function that gives the first call to the first tool, the second to the second, and so on."""
    remaining = iter(tools)
    return lambda call: next(remaining)(call)


@dataclass
class LoopRun:
    """A finished run of the loop.

    Attributes:
        ended: how the run ended.
        bodies: the body of every request.
        ran: every call that was executed.
        events: every event of the loop.
    """

    ended: LoopResult
    bodies: list[JsonObject] = field(default_factory=list)
    ran: list[PreparedCall] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def tool_envelopes(self) -> list[JsonObject]:
        """Return the results that the model received for its calls, in order."""
        return [json.loads(message["content"]) for message in self.ended.history if message["role"] == "tool"]

    def list_event_data(self, event_type: str) -> list[JsonObject]:
        return [event.data for event in self.events if event.type == event_type]


def run_script(plan: LoopPlan, script: Iterable[ScriptItem], tool: CallTool = return_success) -> LoopRun:
    """Run the loop to its end; each request takes the next item of the script.

    Args:
        plan: the plan of the run.
        script: bodies of answers, and errors and stops that replace an answer.
        tool: the function that executes every call.
    """
    events: list[Event] = []
    bodies: list[JsonObject] = []
    ran: list[PreparedCall] = []
    loop, items = run_loop(plan, events.append), iter(script)
    try:
        command = next(loop)
        while True:
            if not isinstance(command, Ask):
                ran.extend(command.calls)
                command = loop.send(tuple(tool(call) for call in command.calls))
                continue
            bodies.append(json.loads(command.request.body))
            item = next(items)
            if isinstance(item, bytes):
                command.decoder.feed(item)
                command = loop.send(command.decoder.close())
            else:
                command = loop.send(FailedExchange(item) if isinstance(item, ExchangeError) else item)
    except StopIteration as end:
        return LoopRun(end.value, bodies, ran, events)
