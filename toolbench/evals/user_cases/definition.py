"""A case of one's own as plain data: tools, messages, what is expected, what the tools answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition
from toolbench.engine.types import JsonObject, Message


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """Arguments are values or matchers (own/matching.py). With `more` the call may have others beside them."""

    name: str
    arguments: JsonObject = field(default_factory=dict)
    more: bool = False


@dataclass(frozen=True, slots=True)
class CaseExpectation:
    """`ordered`: the calls come in the order given. `others`: calls that are not named are no failure. `state` is what
    stands at JSON Pointers of the simulated state at the end; `checks` are rows of own/checks.py."""

    calls: tuple[ExpectedCall, ...] = ()
    ordered: bool = False
    others: bool = False
    no_call: bool = False
    state: JsonObject = field(default_factory=dict)
    checks: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class UserCase:
    """`tools` are in OpenAI's shape. `results` say what a tool answers (own/simulated_tools.py); `initial` is the
    state its effects change. After `turns` answers the run ends, None leaves that to the policy; `parallel` asks for
    several calls in one answer."""

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    expect: CaseExpectation
    results: JsonObject = field(default_factory=dict)
    initial: JsonObject = field(default_factory=dict)
    turns: int | None = None
    parallel: bool = False

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(build_definition(tool) for tool in self.tools)


def build_definition(tool: Mapping[str, Any]) -> ToolDefinition:
    function = tool["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return StoredToolDefinition(function["name"], function.get("description") or "", parameters)


def case_to_json(case: UserCase) -> JsonObject:
    """Plain data, in which keys keep their order; `own.reading.case_of` reads it back."""
    told: JsonObject = {
        "messages": list(case.messages),
        "tools": list(case.tools),
        "expect": _expectation_to_json(case.expect),
    }
    rest = {"results": case.results, "initial": case.initial, "turns": case.turns, "parallel": case.parallel}
    return told | {key: value for key, value in rest.items() if value}


def render_case(case: UserCase) -> str:
    """As it is stored: ASCII, whatever the texts hold."""
    return json.dumps(case_to_json(case))


def _expectation_to_json(expect: CaseExpectation) -> JsonObject:
    calls = [
        {"name": call.name, "arguments": call.arguments} | ({"more": True} if call.more else {})
        for call in expect.calls
    ]
    told: JsonObject = {
        "calls": calls,
        "ordered": expect.ordered,
        "others": expect.others,
        "no_call": expect.no_call,
        "state": expect.state,
        "checks": list(expect.checks),
    }
    return {key: value for key, value in told.items() if value}
