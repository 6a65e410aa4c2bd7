"""A model that answers from a script, on the real wire format, and a driver of the loop without a world."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.events import Ask, Ended, Event, ExchangeError, Failed, Outcome, PreparedCall, Stop
from toolbench.engine.loop.loop import LoopPlan, run_loop
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import resolve
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry

OPS = {"type": "array", "items": {"type": "object", "properties": {"op": {"type": "string"}}, "required": ["op"]}}
PATCH = ToolDefinition(
    "state_patch", "Changes it.", {"type": "object", "properties": {"ops": OPS}, "required": ["ops"]}
)
GET = ToolDefinition("state_get", "Reads it.", {"type": "object", "properties": {}, "required": []})
HIDDEN = ToolDefinition("facts_commit", "Not for models.", {"type": "object"}, exposed_to_model=False)
TOOLS = ToolRegistry((GET, PATCH, HIDDEN))

Script = bytes | ExchangeError | Stop
CallTool = Callable[[PreparedCall], Outcome]


def answer(content: Any = "Done.", *, calls: Any = None, finish: str = "stop", **message: Any) -> bytes:
    """An answer's body. `calls` goes in as tool_calls, whatever it is."""
    said = {"role": "assistant", "content": content, **({} if calls is None else {"tool_calls": calls}), **message}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return json.dumps(
        {"model": "m-1", "choices": [{"message": said, "finish_reason": finish}], "usage": usage}
    ).encode()


def call(name: str = "state_get", arguments: Any = "{}", call_id: Any = "c1") -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: JsonObject) -> bytes:
    return answer(None, calls=list(calls), finish="tool_calls")


def no_tool_support(status: int = 404) -> ExchangeError:
    message = "No endpoints found that support tool use"
    return ExchangeError("no_tool_use", message, status, infrastructure=False, tool_support=True)


def plan(user_text: str = "Go.", *, system: str = "", tools: ToolRegistry = TOOLS, **policy: Any) -> LoopPlan:
    """A plan whose policy is one layer over the engine's defaults."""
    return LoopPlan("m-1", resolve([("test", policy)]).policy, system, user_text, tools=tools)


def works(_: PreparedCall) -> Outcome:
    return Outcome({"fine": True})


def fails(_: PreparedCall) -> Outcome:
    return Outcome(error_code="INTERNAL_ERROR", error_message="The tool failed.")


def one_by_one(*tools: CallTool) -> CallTool:
    """The first call goes to the first tool, the second to the second …"""
    waiting = iter(tools)
    return lambda one: next(waiting)(one)


@dataclass
class Played:
    """One finished run: its end, every request's body, every call that ran, every event."""

    ended: Ended
    bodies: list[JsonObject] = field(default_factory=list)
    ran: list[PreparedCall] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def tool_envelopes(self) -> list[JsonObject]:
        """What the model was told about its calls, in order."""
        return [json.loads(message["content"]) for message in self.ended.history if message["role"] == "tool"]

    def told(self, event_type: str) -> list[JsonObject]:
        return [event.data for event in self.events if event.type == event_type]


def play(given: LoopPlan, script: Iterable[Script], tool: CallTool = works) -> Played:
    """Runs the loop to its end. The script is used up one item per Ask; a Stop in it is sent as such."""
    events: list[Event] = []
    bodies: list[JsonObject] = []
    ran: list[PreparedCall] = []
    loop, items = run_loop(given, events.append), iter(script)
    try:
        wanted = next(loop)
        while True:
            if not isinstance(wanted, Ask):
                ran.extend(wanted.calls)
                wanted = loop.send(tuple(tool(one) for one in wanted.calls))
                continue
            bodies.append(json.loads(wanted.request.body))
            item = next(items)
            if isinstance(item, bytes):
                wanted.decoder.feed(item)
                wanted = loop.send(wanted.decoder.close())
            else:
                wanted = loop.send(Failed(item) if isinstance(item, ExchangeError) else item)
    except StopIteration as end:
        return Played(end.value, bodies, ran, events)
