"""The definition of a user's test case: messages, tools, expectations, and answers of simulated tools."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition
from toolbench.engine.types import JsonObject, Message

TOOL_TIMEOUT = "tool_timeout_seconds"  # name of the setting that limits the time of each call of a tool


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """An expected call of a test case.

    Attributes:
        name: The name of the tool.
        arguments: The expected values, or matchers (matchers.py), by the arguments' names.
        more: Whether the call may have further arguments.
        loose: Whether the case of strings and the amount of white space in them are ignored, and also a null for an
            argument that is not expected.
    """

    name: str
    arguments: JsonObject = field(default_factory=dict)
    more: bool = False
    loose: bool = False


@dataclass(frozen=True, slots=True)
class CaseExpectation:
    """The expectations of a test case.

    Attributes:
        calls: The expected calls.
        ordered: Whether the calls must be made in this order.
        others: Whether other calls are permitted.
        no_call: Whether no tool may be called.
        state: The expected values of the simulated state at the end, or matchers, by JSON Pointer.
        checks: The rows of further checks (checks.py).
    """

    calls: tuple[ExpectedCall, ...] = ()
    ordered: bool = False
    others: bool = False
    no_call: bool = False
    state: JsonObject = field(default_factory=dict)
    checks: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class UserCase:
    """A test case.

    Attributes:
        messages: The messages before the first answer, the last of which is the user's.
        tools: The tools in OpenAI's format.
        expect: The expectations.
        results: The answers of the tools, by name (simulated_tools.py).
        initial: The initial simulated state.
        turns: The number of turns after which the run ends; None for the limit of the policy.
        parallel: Whether requests explicitly permit several calls in one answer; if not, the other policy layers
            decide.
        further: The user's messages after `messages`; each is sent after the previous one is answered.
        group: The name of a group of cases whose rates are shown separately; "" for none.
        control: Whether it is a control, which shows whether the model answers at all and expects no call.
        behaviour: A name of scenarios.behaviours.BEHAVIOURS; "" for none.
        workspace: {id, writable}, if `state_get` and `state_patch` work on `/draft/` as in the case study; else {}.
        settings: Settings of the loop, by the names of options.SETTINGS.
    """

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    expect: CaseExpectation
    results: JsonObject = field(default_factory=dict)
    initial: JsonObject = field(default_factory=dict)
    turns: int | None = None
    parallel: bool = False
    further: tuple[str, ...] = ()
    group: str = ""
    control: bool = False
    behaviour: str = ""
    workspace: JsonObject = field(default_factory=dict)
    settings: JsonObject = field(default_factory=dict)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools as definitions."""
        timeout = self.settings.get(TOOL_TIMEOUT)
        return tuple(replace(build_definition(tool), timeout_seconds=timeout) for tool in self.tools)


def build_definition(tool: Mapping[str, Any]) -> ToolDefinition:
    """Return the definition of a tool in OpenAI's format."""
    function = tool["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return StoredToolDefinition(function["name"], function.get("description") or "", parameters)


def case_to_json(case: UserCase) -> JsonObject:
    """Return the case as plain data, which `parse.parse_case` reads.

    Optional members that are empty, false or null are omitted.
    """
    document: JsonObject = {
        "messages": list(case.messages),
        "tools": list(case.tools),
        "expect": _expectation_to_json(case.expect),
    }
    rest = {
        "results": case.results,
        "initial": case.initial,
        "turns": case.turns,
        "parallel": case.parallel,
        "further": list(case.further),
        "group": case.group,
        "control": case.control,
        "behaviour": case.behaviour,
        "workspace": case.workspace,
        "settings": case.settings,
    }
    return document | {key: value for key, value in rest.items() if value}


def render_case(case: UserCase) -> str:
    """Return the case as JSON text in ASCII, the form in which it is stored."""
    return json.dumps(case_to_json(case))


def _expectation_to_json(expect: CaseExpectation) -> JsonObject:
    calls = [
        {"name": call.name, "arguments": call.arguments}
        | {flag: True for flag in ("more", "loose") if getattr(call, flag)}
        for call in expect.calls
    ]
    document: JsonObject = {
        "calls": calls,
        "ordered": expect.ordered,
        "others": expect.others,
        "no_call": expect.no_call,
        "state": expect.state,
        "checks": list(expect.checks),
    }
    return {key: value for key, value in document.items() if value}
