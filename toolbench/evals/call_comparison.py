"""Comparison of the calls of a trial with those that its task expects, for display.

Verdicts and causes do not depend on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals.call_matching import NO_MATCH, match_calls
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging.messages import find_value_at_path, parse_path

NO_CALL_SENTENCE = "The task expects no call."
NO_FIXED_CALLS_SENTENCE = "The task has no fixed expected calls: checks of the result decide the verdict."
NO_FIXED_ARGUMENTS_SENTENCE = "The task has no fixed arguments for {tools}: checks of the result decide the verdict."
MISSING, EXTRA, DIFFERENT = "missing", "extra", "differs"  # values of ArgumentDifference.got
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
    """The result of comparing a call with the expected calls.

    Attributes:
        AS_EXPECTED: The call is an expected one, or a failed call with right arguments for an expected one.
        DIFFERENT: The arguments differ from those of the expected call, cannot be read or break the tool's schema.
        EXTRA: The task expects no such call, or not so many of them, and permits no others.
        OUT_OF_ORDER: The call is an expected one, but the task expects it before a call that was made earlier.
        NOT_COMPARED: The task permits further calls, or the calls that it expects are not known.
    """

    AS_EXPECTED = "as expected"
    DIFFERENT = "arguments differ"
    EXTRA = "extra"
    OUT_OF_ORDER = "out of order"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that the model made.

    Attributes:
        arguments: The parsed arguments; None if they could not be read.
        ok: Whether the call succeeded.
        schema_errors: The violations of the tool's schema.
        error_code: The code of the first error of its result; "" without one.
    """

    tool: str
    arguments: JsonObject | None
    ok: bool
    schema_errors: tuple[SchemaError, ...] = ()
    error_code: str = ""

    @property
    def is_offered(self) -> bool:
        """Return whether the tool was offered, as far as the error of the call shows.

        Arguments are read first, so an unknown tool counts as offered if they cannot be read.
        """
        return self.error_code != "TOOL_NOT_ALLOWED"


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """A difference between the arguments of a call and the expected ones.

    Attributes:
        path: The JSON path of the value.
        expected: The JSON type of the expected value if the call's value has another one; "" for a matcher, a violation
            of the tool's schema and any other difference.
        got: The JSON type of the call's value, or one of the words missing, extra and differs.
    """

    path: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """A call that was made, and its comparison with an expected call.

    Attributes:
        expected: The expected call; None if the call is compared with none.
        differences: The differences from the expected call and the violations of the tool's schema; empty if the call
            is compared with an expected one and its arguments cannot be read.
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
        missing: The expected calls that no call is compared with.
        note: A sentence, if the task expects no call or has no fixed calls; "" otherwise.
    """

    calls: tuple[ComparedCall, ...]
    missing: tuple[ExpectedToolCall, ...] = ()
    note: str = ""


def compare_calls(made: Sequence[MadeCall], expected: ExpectedCalls) -> ComparedCalls:
    """Return the comparison of the calls of one trial.

    Calls with right arguments are matched with the expected calls so that as many as possible are matched; a call that
    succeeded is preferred to a failed one. Any other call is compared with the expected call of its tool from which it
    differs at the fewest paths, among those to which no call is matched and no earlier successful call was compared. A
    failed call may also be compared with one of the others, because the model may have repeated the call. Unless the
    task accepts refused calls, a call that Toolbench refused is never matched, and a call of a tool that was not
    offered is compared with no expected call.

    Args:
        made: The calls of the trial, in order.
        expected: The calls that the task expects.
    """
    if not expected.calls:
        return _build_without_expected_calls(made, expected)
    exact_matches = _match_exact(made, expected)
    taken_indices, compared_indices = set(exact_matches.values()), set(exact_matches.values())
    compared: list[ComparedCall] = []
    max_expected_index = -1
    for made_index, call in enumerate(made):
        expected_index = exact_matches.get(made_index)
        if expected_index is not None:
            is_late = expected.is_ordered and expected_index < max_expected_index
            compared.append(_build_exact(call, expected.calls[expected_index], is_late=is_late))
            max_expected_index = max(max_expected_index, expected_index)
            continue
        nearest_index = _find_nearest(call, expected, taken_indices)
        compared.append(_compare_unmatched(call, expected, nearest_index))
        if nearest_index is not None:
            compared_indices.add(nearest_index)
            taken_indices |= {nearest_index} if call.ok else set()
    missing = tuple(call for index, call in enumerate(expected.calls) if index not in compared_indices)
    return ComparedCalls(tuple(compared), missing)


def _build_exact(call: MadeCall, expected_call: ExpectedToolCall, *, is_late: bool) -> ComparedCall:
    status = CallStatus.OUT_OF_ORDER if is_late else CallStatus.AS_EXPECTED
    return ComparedCall(call, status, expected_call, _list_schema_differences(call))


def _build_without_expected_calls(made: Sequence[MadeCall], expected: ExpectedCalls) -> ComparedCalls:
    status, note = CallStatus.NOT_COMPARED, NO_FIXED_CALLS_SENTENCE
    if expected.needs_call is False:
        status, note = CallStatus.EXTRA, NO_CALL_SENTENCE
    elif expected.tools:
        note = NO_FIXED_ARGUMENTS_SENTENCE.format(tools=", ".join(dict.fromkeys(expected.tools)))
    return ComparedCalls(
        tuple(ComparedCall(call, status, None, _list_schema_differences(call)) for call in made), (), note
    )


def _match_exact(made: Sequence[MadeCall], expected: ExpectedCalls) -> dict[int, int]:
    """Return the index of the expected call for each matched call, by the index of the matched call.

    If the task has an order, calls are matched in that order, unless more of them can be matched in any order.
    """
    costs = [
        [float(not call.ok) if _is_match(call, expected_call, expected) else NO_MATCH for call in made]
        for expected_call in expected.calls
    ]
    matches = match_calls(costs, ordered=expected.is_ordered)
    if expected.is_ordered and len(matches) < len(expected.calls):
        matches = max(matches, match_calls(costs), key=len)  # the ordered ones if both are equally many
    return {made_index: expected_index for expected_index, made_index in matches.items()}


def _is_match(call: MadeCall, expected_call: ExpectedToolCall, expected: ExpectedCalls) -> bool:
    if not expected.accepts_refused and (call.schema_errors or not call.is_offered):
        return False
    return call.tool == expected_call.tool and call.arguments is not None and expected_call.is_match(call.arguments)


def _find_nearest(call: MadeCall, expected: ExpectedCalls, taken_indices: set[int]) -> int | None:
    """Return the index of the expected call that an unmatched call is compared with; None if there is none."""
    if not call.is_offered and not expected.accepts_refused:
        return None
    tool_indices = [index for index, expected_call in enumerate(expected.calls) if expected_call.tool == call.tool]
    if not call.ok:
        right_indices = [index for index in tool_indices if _is_match(call, expected.calls[index], expected)]
        if right_indices:
            return right_indices[0]
    free_indices = [index for index in tool_indices if index not in taken_indices]
    indices = free_indices or ([] if call.ok else tool_indices)
    return min(indices, key=lambda index: len(_list_differences(call, expected.calls[index])), default=None)


def _compare_unmatched(call: MadeCall, expected: ExpectedCalls, nearest_index: int | None) -> ComparedCall:
    if nearest_index is not None:
        expected_call = expected.calls[nearest_index]
        # The failed call has right arguments, but another call is matched with the expected one.
        is_repeated = not call.ok and _is_match(call, expected_call, expected)
        status = CallStatus.AS_EXPECTED if is_repeated else CallStatus.DIFFERENT
        return ComparedCall(call, status, expected_call, _list_differences(call, expected_call))
    status = CallStatus.NOT_COMPARED if expected.permits_others else CallStatus.EXTRA
    return ComparedCall(call, status, None, _list_schema_differences(call))


def _list_differences(call: MadeCall, expected_call: ExpectedToolCall) -> tuple[ArgumentDifference, ...]:
    if call.arguments is None:
        return ()
    paths = expected_call.list_wrong_paths(call.arguments)
    by_path = {path: _build_difference(path, expected_call.arguments, call.arguments) for path in paths}
    violations = (violation for violation in _list_schema_differences(call) if violation.path not in by_path)
    return (*by_path.values(), *violations)


def _build_difference(path: str, expected: JsonObject | None, arguments: JsonObject) -> ArgumentDifference:
    value = _find_value(arguments, path)
    if value is _ABSENT:
        return ArgumentDifference(path, "", MISSING)
    if expected is None:
        return ArgumentDifference(path, "", DIFFERENT)
    expected_value = _find_value(expected, path)
    if expected_value is _ABSENT:
        return ArgumentDifference(path, "", EXTRA)
    expected_type, value_type = name_json_type(expected_value), name_json_type(value)
    # A matcher of a user's test case is an object in place of the value, so its type says nothing.
    is_matcher = isinstance(expected_value, dict) and any(key.startswith("$") for key in expected_value)
    if is_matcher or expected_type == value_type:
        return ArgumentDifference(path, "", DIFFERENT)
    return ArgumentDifference(path, expected_type, value_type)


def _list_schema_differences(call: MadeCall) -> tuple[ArgumentDifference, ...]:
    """Return the violations of the tool's schema as differences."""
    return tuple(
        ArgumentDifference(error.path, "", _describe_schema_error(error, call.arguments))
        for error in call.schema_errors
    )


def _describe_schema_error(error: SchemaError, arguments: JsonObject | None) -> str:
    """Return the violation as a value of ArgumentDifference.got."""
    if error.kind in (MISSING, EXTRA):
        return error.kind
    value = _find_value(arguments, error.path)
    return name_json_type(value) if error.kind == "type" and value is not _ABSENT else DIFFERENT


def name_json_type(value: object) -> str:
    """Return the JSON type of a value: boolean, number, string, array, object or null."""
    return next((name for python_type, name in _JSON_TYPES if isinstance(value, python_type)), "null")


def _find_value(value: Any, path: str) -> Any:
    """Return the value at a JSON path; _ABSENT if there is none, or if the path cannot be parsed.

    Task packs write `$.my-arg` without quotes, so the text after "$." is first looked up as the name of an argument.
    """
    name = path.removeprefix("$.")
    if isinstance(value, dict) and name in value:
        return value[name]
    try:
        steps = parse_path(path)
    except ValueError:
        return _ABSENT
    return find_value_at_path(value, steps, _ABSENT) if steps or path == "$" else _ABSENT
