"""Parsing of test cases from JSON values, with a path and a sentence for every mistake."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import StoredToolDefinition
from toolbench.engine.tools.validation import check_schema
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.json_pointers import is_pointer
from toolbench.evals.user_cases.checks import iter_check_problems
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase
from toolbench.evals.user_cases.documents import replace_surrogates
from toolbench.evals.user_cases.matchers import iter_matcher_problems
from toolbench.evals.user_cases.options import iter_option_problems
from toolbench.evals.user_cases.simulated_tools import iter_result_problems

DocumentPath = tuple[str | int, ...]
_EXPECT_KEYS = ("calls", "ordered", "others", "no_call", "state", "checks")
_CALL_KEYS = ("name", "arguments", "more", "loose")
_OPTION_KEYS = ("further", "group", "control", "behaviour", "workspace", "settings")
_CASE_KEYS = ("messages", "tools", "expect", "results", "initial", "turns", "parallel", *_OPTION_KEYS)
_ROLES = ("system", "user", "assistant", "tool")
MAX_TURNS = 50
MAX_LISTED_TOOLS = 20  # in the sentence about an unknown tool


@dataclass(frozen=True, slots=True)
class CaseProblem:
    """A mistake in a test case.

    Attributes:
        place: The path to the mistake in the document, such as ("tools", 0); empty for a mistake of the whole document.
        message: The mistake as a sentence.
    """

    place: DocumentPath
    message: str


class InvalidCaseError(Exception):
    """A test case that has mistakes; the message has all their sentences.

    Attributes:
        problems: The mistakes, at least one.
    """

    def __init__(self, problems: Sequence[CaseProblem]) -> None:
        self.problems = tuple(CaseProblem(problem.place, replace_surrogates(problem.message)) for problem in problems)
        super().__init__(" ".join(problem.message for problem in self.problems))


def parse_case(document: Any) -> UserCase:
    """Return the test case that a document describes.

    The document may have the short forms that `parse_tools`, `parse_messages` and `parse_expectation` accept.

    Args:
        document: Any JSON value.

    Raises:
        InvalidCaseError: The document has mistakes.
    """
    if not isinstance(document, Mapping):
        raise InvalidCaseError([CaseProblem((), "A test case must be an object with tools, messages and expect.")])
    tools = parse_tools(document.get("tools"))
    messages = parse_messages(document.get("messages"))
    tool_names = dict.fromkeys(sorted(name for tool in tools if (name := _find_name(tool))))
    expect = parse_expectation(document.get("expect"))
    problems = [
        CaseProblem((key,), f"A test case has no {key}. It may have {', '.join(_CASE_KEYS)}.")
        for key in document
        if key not in _CASE_KEYS
    ]
    problems += [] if _needs_no_tools(document) else _iter_tool_problems(tools)
    problems += [*_iter_message_problems(messages), *_iter_expect_problems(expect, tool_names)]
    problems += [
        CaseProblem(("results", *place), message)
        for place, message in iter_result_problems(document.get("results") or {}, tool_names)
    ]
    problems += _iter_run_problems(document)
    problems += [CaseProblem(place, message) for place, message in iter_option_problems({**document, "expect": expect})]
    if problems:
        raise InvalidCaseError(problems)
    return UserCase(
        messages=tuple(messages),
        tools=tuple(tools),
        expect=_build_expectation(expect),
        results=document.get("results") or {},
        initial=document.get("initial") or {},
        turns=document.get("turns"),
        parallel=bool(document.get("parallel")),
        further=tuple(document.get("further") or ()),
        group=document.get("group") or "",
        control=bool(document.get("control")),
        behaviour=document.get("behaviour") or "",
        workspace=document.get("workspace") or {},
        settings=document.get("settings") or {},
    )


def _needs_no_tools(document: Mapping[str, Any]) -> bool:
    """Return whether the document is a control without tools."""
    return bool(document.get("control")) and document.get("tools") in (None, [])


def parse_tools(tools: Any) -> list[Any]:
    """Return the tools of a case as a list; they are not checked.

    A single object becomes a list with this tool. A function without OpenAI's wrapper, {"name": …}, becomes
    {"type": "function", "function": {"name": …}}. A value that is neither object nor list gives an empty list.
    """
    listed_tools = [tools] if isinstance(tools, Mapping) else tools if isinstance(tools, list) else []
    return [_wrap_function(tool) for tool in listed_tools]


def parse_messages(messages: Any) -> list[Any]:
    """Return the messages of a case as a list; they are not checked.

    A text becomes one message of the user. A value that is neither text nor list gives an empty list.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return messages if isinstance(messages, list) else []


def parse_expectation(expect: Any) -> Any:
    """Return the expectations of a case; they are not checked.

    One call or a list of calls becomes {"calls": […]}; any other value is returned unchanged.
    """
    if isinstance(expect, list):
        return {"calls": expect}
    if isinstance(expect, Mapping) and "name" in expect:
        return {"calls": [expect]}
    return expect


def _wrap_function(tool: Any) -> Any:
    return {"type": "function", "function": tool} if isinstance(tool, Mapping) and "name" in tool else tool


def _find_name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def _iter_tool_problems(tools: list[Any]) -> Iterator[CaseProblem]:
    if not tools:
        yield CaseProblem(("tools",), "Tools must be an array with at least one tool, as in a request to OpenAI.")
    names: set[str] = set()
    for number, tool in enumerate(tools):
        place, name = ("tools", number), _find_name(tool)
        if not name:
            yield CaseProblem(
                place, "A tool must have the form {type: function, function: {name, description, parameters}}."
            )
        elif name in names:
            yield CaseProblem(place, f"Two tools have the name {name}.")
        else:
            names.add(name)
            yield from _iter_schema_problems(tool["function"], place)


def _iter_schema_problems(function: Mapping[str, Any], place: DocumentPath) -> Iterator[CaseProblem]:
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        yield CaseProblem((*place, "function", "parameters"), "parameters must be a JSON Schema, which is an object.")
        return
    if not isinstance(function.get("description") or "", str):
        yield CaseProblem((*place, "function", "description"), "description must be a text.")
    try:
        check_schema(StoredToolDefinition(function["name"], "", parameters))
    except PlanError as error:
        yield CaseProblem((*place, "function", "parameters"), f"{str(error)[:1].upper()}{str(error)[1:]}.")


def _iter_message_problems(messages: list[Message]) -> Iterator[CaseProblem]:
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            yield CaseProblem(("messages", number), f"A message must be an object with a role: {', '.join(_ROLES)}.")
    last = messages[-1] if messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    is_user_text = isinstance(last, Mapping) and last.get("role") == "user" and isinstance(content, str)
    if not is_user_text or not str(content).strip():
        yield CaseProblem(("messages",), "The last message must be the user's, with a text that is not blank.")


def _iter_expect_problems(expect: Any, tool_names: Collection[str]) -> Iterator[CaseProblem]:
    if not isinstance(expect, Mapping) or not expect:
        yield CaseProblem(
            ("expect",), "Enter what is expected: a call with name and arguments, no_call, state, or checks."
        )
        return
    for key in expect:
        if key not in _EXPECT_KEYS:
            hint = f" Write {key} into a call." if key in _CALL_KEYS else ""
            yield CaseProblem(("expect", key), f"expect has no {key}. It may have {', '.join(_EXPECT_KEYS)}.{hint}")
    calls = expect.get("calls", [])
    if not isinstance(calls, list):
        yield CaseProblem(("expect", "calls"), "calls must be a list of calls, each with name and arguments.")
        calls = []
    for number, call in enumerate(calls):
        yield from _iter_call_problems(call, ("expect", "calls", number), tool_names)
    if expect.get("no_call") and calls:
        yield CaseProblem(("expect", "no_call"), "A test case cannot expect both calls and no_call: remove one.")
    state = expect.get("state", {})
    if not isinstance(state, Mapping) or not all(isinstance(key, str) and is_pointer(key) for key in state):
        yield CaseProblem(
            ("expect", "state"), "state must be an object whose keys are JSON Pointers, such as /orders/17/status."
        )
    else:
        yield from (
            CaseProblem(("expect", "state", *place), message) for place, message in iter_matcher_problems(state)
        )
    yield from _iter_row_problems(expect.get("checks", []), tool_names)
    if not any(expect.get(key) for key in ("calls", "no_call", "state", "checks")):
        yield CaseProblem(("expect",), "Nothing is expected yet: calls, no_call, state and checks are all empty.")


def _iter_call_problems(call: Any, place: DocumentPath, tool_names: Collection[str]) -> Iterator[CaseProblem]:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        yield CaseProblem(place, "An expected call must be an object with name and arguments.")
        return
    for key in call:
        if key not in _CALL_KEYS:
            yield CaseProblem((*place, key), f"An expected call has no {key}. It may have {', '.join(_CALL_KEYS)}.")
    if call["name"] not in tool_names:
        ellipsis_text = ", …" if len(tool_names) > MAX_LISTED_TOOLS else ""
        listed_names = ", ".join(islice(tool_names, MAX_LISTED_TOOLS))
        hint = f" The tools are {listed_names}{ellipsis_text}." if tool_names else ""
        yield CaseProblem((*place, "name"), f"There is no tool {call['name']}.{hint}")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, Mapping):
        yield CaseProblem((*place, "arguments"), "arguments must be an object.")
    else:
        problems = iter_matcher_problems(dict(arguments), (*place, "arguments"))
        yield from (CaseProblem(path, message) for path, message in problems)


def _iter_row_problems(rows: Any, tool_names: Collection[str]) -> Iterator[CaseProblem]:
    if not isinstance(rows, list):
        yield CaseProblem(("expect", "checks"), "checks must be a list.")
        return
    for number, row in enumerate(rows):
        yield from (
            CaseProblem(("expect", "checks", number), message) for message in iter_check_problems(row, tool_names)
        )


def _iter_run_problems(document: Mapping[str, Any]) -> Iterator[CaseProblem]:
    """Yield each mistake in the number of turns and in the initial state."""
    turns = document.get("turns")
    if turns is not None and (isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MAX_TURNS):
        yield CaseProblem(("turns",), f"turns must be a whole number from 1 to {MAX_TURNS}.")
    if not isinstance(document.get("initial") or {}, Mapping):
        yield CaseProblem(("initial",), "initial must be an object, the state before the first call.")


def _build_expectation(expect: JsonObject) -> CaseExpectation:
    calls = (
        ExpectedCall(
            call["name"], call.get("arguments", {}), more=bool(call.get("more")), loose=bool(call.get("loose"))
        )
        for call in expect.get("calls", [])
    )
    return CaseExpectation(
        calls=tuple(calls),
        ordered=bool(expect.get("ordered")),
        others=bool(expect.get("others")),
        no_call=bool(expect.get("no_call")),
        state=expect.get("state", {}),
        checks=tuple(expect.get("checks", ())),
    )
