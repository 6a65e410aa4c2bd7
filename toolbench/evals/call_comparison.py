"""The calls of a trial beside those that its task expects: as expected, different, missing, extra or out of order.

The comparison is for display. Verdicts and causes do not depend on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging.messages import parse_path

NO_CALL_SENTENCE = "The task expects no call."
UNFIXED_SENTENCE = "The task has no fixed expected calls: the checks say what the calls must lead to."
UNFIXED_ARGUMENTS_SENTENCE = "The task has no fixed arguments for {tools}: the checks say what the calls must lead to."
MISSING, EXTRA, DIFFERENT = "missing", "extra", "differs"
_ABSENT = object()
_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


class CallStatus(StrEnum):
    """How a call compares with the expected ones."""

    AS_EXPECTED = "as expected"
    DIFFERENT = "arguments differ"
    EXTRA = "extra"
    OUT_OF_ORDER = "out of order"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call of the model.

    Attributes:
        arguments: None if they could not be read.
        ok: Whether the tool accepted the call.
        schema_errors: The violations of the tool's schema.
    """

    tool: str
    arguments: JsonObject | None
    ok: bool
    schema_errors: tuple[SchemaError, ...] = ()


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """A place where arguments differ.

    Attributes:
        expected: One word for the expected side: a JSON type, or "" if the word of the other side says it all.
        got: One word for the side of the call: a JSON type, missing, extra or differs.
    """

    path: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """A call that was made, and the expected call that it is compared with.

    Attributes:
        expected: None if there is none.
    """

    made: MadeCall
    status: CallStatus
    expected: ExpectedToolCall | None = None
    differences: tuple[ArgumentDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedCalls:
    """The calls of a trial compared with the expected ones.

    Attributes:
        calls: The calls made, in order.
        missing: The expected calls that no call was made for.
        note: Why calls are not compared, or that none was expected; else empty.
    """

    calls: tuple[ComparedCall, ...]
    missing: tuple[ExpectedToolCall, ...] = ()
    note: str = ""


def compare_calls(made: Sequence[MadeCall], due: ExpectedCalls) -> ComparedCalls:
    """Return the comparison of the calls of one trial.

    A call is matched with the first expected call that it fits and that no earlier call was matched with. Any other
    call is compared with the expected call of its tool that it differs least from; an expected call that was matched
    is taken for that only if the call was refused, since the model may have corrected it.
    """
    if not due.calls:
        return _describe_without_calls(made, due)
    exact = _match_exact(made, due.calls)
    matched, tried = set(exact.values()), set(exact.values())
    compared: list[ComparedCall] = []
    furthest = -1
    for number, call in enumerate(made):
        place = exact.get(number)
        if place is not None:
            compared.append(_build_exact(call, due.calls[place], late=due.ordered and place < furthest))
            furthest = max(furthest, place)
            continue
        nearest = _find_nearest(call, due.calls, matched)
        compared.append(_compare_unmatched(call, due, nearest))
        if nearest is not None:
            tried.add(nearest)
            matched |= {nearest} if call.ok else set()
    missing = tuple(call for place, call in enumerate(due.calls) if place not in tried)
    return ComparedCalls(tuple(compared), missing)


def _build_exact(call: MadeCall, expected: ExpectedToolCall, *, late: bool) -> ComparedCall:
    status = CallStatus.OUT_OF_ORDER if late else CallStatus.AS_EXPECTED
    return ComparedCall(call, status, expected, _list_schema_differences(call))


def _describe_without_calls(made: Sequence[MadeCall], due: ExpectedCalls) -> ComparedCalls:
    status = CallStatus.EXTRA if due.call is False else CallStatus.NOT_COMPARED
    tools = ", ".join(dict.fromkeys(due.tools))
    unfixed = UNFIXED_ARGUMENTS_SENTENCE.format(tools=tools) if tools else UNFIXED_SENTENCE
    note = NO_CALL_SENTENCE if due.call is False else unfixed
    return ComparedCalls(
        tuple(ComparedCall(call, status, None, _list_schema_differences(call)) for call in made), (), note
    )


def _match_exact(made: Sequence[MadeCall], expected: Sequence[ExpectedToolCall]) -> dict[int, int]:
    """Return the expected call of each call that fits one, by place. Calls that succeeded choose first."""
    found: dict[int, int] = {}
    for number, call in sorted(enumerate(made), key=lambda item: not item[1].ok):
        fits = (place for place, due in enumerate(expected) if place not in found.values() and _is_match(call, due))
        if (place := next(fits, None)) is not None:
            found[number] = place
    return found


def _is_match(call: MadeCall, expected: ExpectedToolCall) -> bool:
    return call.tool == expected.tool and call.arguments is not None and expected.is_match(call.arguments)


def _find_nearest(call: MadeCall, expected: Sequence[ExpectedToolCall], matched: set[int]) -> int | None:
    """Return the place of the expected call of the same tool that the call differs least from; None without one."""
    if not call.ok and (exact := [place for place, due in enumerate(expected) if _is_match(call, due)]):
        return exact[0]
    same_tool = [place for place, due in enumerate(expected) if due.tool == call.tool]
    places = [place for place in same_tool if place not in matched] or ([] if call.ok else same_tool)
    return min(places, key=lambda place: len(_list_differences(call, expected[place])), default=None)


def _compare_unmatched(call: MadeCall, due: ExpectedCalls, nearest: int | None) -> ComparedCall:
    if nearest is not None:
        expected = due.calls[nearest]
        again = not call.ok and _is_match(call, expected)  # refused by a fault of the tool, and made again
        status = CallStatus.AS_EXPECTED if again else CallStatus.DIFFERENT
        return ComparedCall(call, status, expected, _list_differences(call, expected))
    status = CallStatus.NOT_COMPARED if due.others else CallStatus.EXTRA
    return ComparedCall(call, status, None, _list_schema_differences(call))


def _list_differences(call: MadeCall, expected: ExpectedToolCall) -> tuple[ArgumentDifference, ...]:
    if call.arguments is None:
        return ()
    paths = expected.list_wrong_paths(call.arguments)
    found = {path: _describe_difference(path, expected.arguments, call.arguments) for path in paths}
    schema = (error for error in _list_schema_differences(call) if error.path not in found)
    return (*found.values(), *schema)


def _describe_difference(path: str, expected: JsonObject | None, given: JsonObject) -> ArgumentDifference:
    there = _find_value(given, path)
    if there is _ABSENT:
        return ArgumentDifference(path, "", MISSING)
    if expected is None:
        return ArgumentDifference(path, "", DIFFERENT)
    due = _find_value(expected, path)
    if due is _ABSENT:
        return ArgumentDifference(path, "", EXTRA)
    names = name_json_type(due), name_json_type(there)
    matcher = isinstance(due, dict) and any(key.startswith("$") for key in due)
    return (
        ArgumentDifference(path, "", DIFFERENT) if matcher or names[0] == names[1] else ArgumentDifference(path, *names)
    )


def _list_schema_differences(call: MadeCall) -> tuple[ArgumentDifference, ...]:
    """Return the violations of the tool's schema in one word each."""
    return tuple(
        ArgumentDifference(error.path, "", _name_schema_error(error, call.arguments)) for error in call.schema_errors
    )


def _name_schema_error(error: SchemaError, arguments: JsonObject | None) -> str:
    if error.kind in (MISSING, EXTRA):
        return error.kind
    value = _find_value(arguments, error.path)
    return name_json_type(value) if error.kind == "type" and value is not _ABSENT else DIFFERENT


def name_json_type(value: object) -> str:
    """Return the JSON type of a value: boolean, number, string, array, object or null."""
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")


def _find_value(value: Any, path: str) -> Any:
    """Return the value at a JSON path; _ABSENT if there is none, or if a model's key makes the path unreadable."""
    try:
        steps = parse_path(path)
    except ValueError:
        return _ABSENT
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else _ABSENT
        else:
            value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value
