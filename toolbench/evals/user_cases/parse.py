"""From what somebody wrote to a case, or to every fault with its place in what was written."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.messages import JsonObject, Message
from toolbench.engine.tools.definitions import StoredToolDefinition
from toolbench.engine.tools.validation import check_schema
from toolbench.evals.user_cases.checks import check_faults
from toolbench.evals.user_cases.definition import Expected, ExpectedCall, OwnCase
from toolbench.evals.user_cases.documents import whole_characters
from toolbench.evals.user_cases.matchers import matcher_faults
from toolbench.evals.user_cases.simulated_tools import is_pointer, result_faults

Place = tuple[str | int, ...]
_EXPECTED = ("name", "arguments", "more", "calls", "ordered", "others", "no_call", "state", "checks")
_CALL = ("name", "arguments", "more")
_CASE = ("messages", "tools", "expect", "results", "initial", "turns", "parallel")
_ROLES = ("system", "user", "assistant", "tool")
MOST_TURNS = 50
MOST_NAMED = 20  # tools that a fault lists


@dataclass(frozen=True, slots=True)
class Fault:
    """`place` leads to it, in the part (tools, messages, expect, results …) that it begins with."""

    place: Place
    says: str


class Faults(Exception):
    """Everything that is wrong with a case."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(Fault(fault.place, whole_characters(fault.says)) for fault in faults)
        super().__init__(" ".join(fault.says for fault in self.faults))


def case_of(told: Any) -> OwnCase:
    """A case from its plain data. Raises Faults. What is left out of `expect` is not looked at."""
    if not isinstance(told, Mapping):
        raise Faults([Fault((), "A case is an object with tools, messages and expect.")])
    tools = tools_of(told.get("tools"))
    messages = messages_of(told.get("messages"))
    names = dict.fromkeys(sorted(name for tool in tools if (name := _name(tool))))
    expect = expectation_of(told.get("expect"))
    faults = [Fault((key,), f"A case has no {key}: {', '.join(_CASE)}.") for key in told if key not in _CASE]
    faults += [*_tool_faults(tools), *_message_faults(messages), *_expect_faults(expect, names)]
    faults += [Fault(("results", *place), says) for place, says in result_faults(told.get("results") or {}, names)]
    faults += _setting_faults(told)
    if faults:
        raise Faults(faults)
    return OwnCase(
        messages=tuple(messages),
        tools=tuple(tools),
        expect=_expected(expect),
        results=told.get("results") or {},
        initial=told.get("initial") or {},
        turns=told.get("turns"),
        parallel=bool(told.get("parallel")),
    )


def tools_of(told: Any) -> list[Any]:
    """One tool or a list; each in OpenAI's shape, or the function alone, which gets its wrapping."""
    listed = [told] if isinstance(told, Mapping) else told if isinstance(told, list) else []
    return [_wrapped(tool) for tool in listed]


def messages_of(told: Any) -> list[Any]:
    """A bare text is what the user says."""
    return [{"role": "user", "content": told}] if isinstance(told, str) else told if isinstance(told, list) else []


def expectation_of(told: Any) -> Any:
    """One call or a list of calls stands for {"calls": […]}."""
    if isinstance(told, list):
        return {"calls": told}
    if isinstance(told, Mapping) and "name" in told:
        return {"calls": [told]}
    return told


def _wrapped(tool: Any) -> Any:
    return {"type": "function", "function": tool} if isinstance(tool, Mapping) and "name" in tool else tool


def _name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def _tool_faults(tools: list[Any]) -> Iterator[Fault]:
    if not tools:
        yield Fault(("tools",), "Tools are an array with at least one tool, as in a request to OpenAI.")
    seen: set[str] = set()
    for number, tool in enumerate(tools):
        place, name = ("tools", number), _name(tool)
        if not name:
            yield Fault(place, "A tool is {type: function, function: {name, description, parameters}}.")
        elif name in seen:
            yield Fault(place, f"The tool {name} is here twice.")
        else:
            seen.add(name)
            yield from _schema_faults(tool["function"], place)


def _schema_faults(function: Mapping[str, Any], place: Place) -> Iterator[Fault]:
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        yield Fault((*place, "function", "parameters"), "parameters is a JSON Schema: an object.")
        return
    if not isinstance(function.get("description") or "", str):
        yield Fault((*place, "function", "description"), "description is a text.")
    try:
        check_schema(StoredToolDefinition(function["name"], "", parameters))
    except PlanError as error:
        yield Fault((*place, "function", "parameters"), f"{str(error)[:1].upper()}{str(error)[1:]}.")


def _message_faults(messages: list[Message]) -> Iterator[Fault]:
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            yield Fault(("messages", number), f"A message is an object whose role is one of {', '.join(_ROLES)}.")
    last = messages[-1] if messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    asks = isinstance(last, Mapping) and last.get("role") == "user" and isinstance(content, str) and content.strip()
    if not asks:
        yield Fault(("messages",), "The last message is what the user says, as a text that is not blank.")


def _expect_faults(expect: Any, tools: Collection[str]) -> Iterator[Fault]:
    if not isinstance(expect, Mapping) or not expect:
        yield Fault(("expect",), "Say what is expected: a call with name and arguments, no_call, state, or checks.")
        return
    for key in expect:
        if key not in _EXPECTED:
            yield Fault(("expect", key), f"Nothing is called {key} here: {', '.join(_EXPECTED[3:])}.")
    calls = expect.get("calls", [])
    if not isinstance(calls, list):
        yield Fault(("expect", "calls"), "calls is a list of calls, each with name and arguments.")
        calls = []
    for number, call in enumerate(calls):
        yield from _call_faults(call, ("expect", "calls", number), tools)
    if expect.get("no_call") and calls:
        yield Fault(("expect", "no_call"), "Calls are expected and no_call is said: only one can hold.")
    state = expect.get("state", {})
    if not isinstance(state, Mapping) or not all(isinstance(key, str) and is_pointer(key) for key in state):
        yield Fault(("expect", "state"), "state is an object from JSON Pointers (/orders/17/status) to values.")
    else:
        yield from (Fault(("expect", "state", *place), says) for place, says in matcher_faults(state))
    yield from _rows(expect.get("checks", []), tools)
    if not any(expect.get(key) for key in ("calls", "no_call", "state", "checks")):
        yield Fault(("expect",), "Nothing is expected yet: calls, no_call, state and checks are all empty.")


def _call_faults(call: Any, place: Place, tools: Collection[str]) -> Iterator[Fault]:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        yield Fault(place, "An expected call is an object with name and arguments.")
        return
    for key in call:
        if key not in _CALL:
            yield Fault((*place, key), f"A call has no {key}: {', '.join(_CALL)}.")
    if call["name"] not in tools:
        more = ", …" if len(tools) > MOST_NAMED else ""
        named = f": {', '.join(islice(tools, MOST_NAMED))}{more}" if tools else ""
        yield Fault((*place, "name"), f"There is no tool {call['name']} among the tools{named}.")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, Mapping):
        yield Fault((*place, "arguments"), "arguments is an object.")
    else:
        faults = matcher_faults(dict(arguments), (*place, "arguments"))
        yield from (Fault(where, says) for where, says in faults)


def _rows(rows: Any, tools: Collection[str]) -> Iterator[Fault]:
    if not isinstance(rows, list):
        yield Fault(("expect", "checks"), "checks is a list.")
        return
    for number, row in enumerate(rows):
        yield from (Fault(("expect", "checks", number), says) for says in check_faults(row, tools))


def _setting_faults(told: Mapping[str, Any]) -> Iterator[Fault]:
    turns = told.get("turns")
    if turns is not None and (isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_TURNS):
        yield Fault(("turns",), f"turns is a whole number from 1 to {MOST_TURNS}.")
    if not isinstance(told.get("initial") or {}, Mapping):
        yield Fault(("initial",), "initial is an object: the state before the first call.")


def _expected(expect: JsonObject) -> Expected:
    calls = (
        ExpectedCall(call["name"], call.get("arguments", {}), more=bool(call.get("more")))
        for call in expect.get("calls", [])
    )
    return Expected(
        calls=tuple(calls),
        ordered=bool(expect.get("ordered")),
        others=bool(expect.get("others")),
        no_call=bool(expect.get("no_call")),
        state=expect.get("state", {}),
        checks=tuple(expect.get("checks", ())),
    )
