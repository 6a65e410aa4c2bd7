"""Judging of tasks by their expected calls and the required reply."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.evals.call_matching import NO_MATCH, match_calls
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, find_last_turn, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import (
    CALLS_PATH,
    CONTENT_PATH,
    RecordedCall,
    count_calls,
    has_calls,
    has_started_calls,
    iter_calls,
    list_error_codes,
)
from toolbench.evals.types import Check, Instance, Verdict

RULE = "Every expected call is made once with the expected arguments ({calls}), and no other call succeeds."
NO_CALL_RULE = "No tool is called, and the reply is not blank."
ABSENT = object()


@dataclass(frozen=True, slots=True)
class TaskExpectation:
    """The expected calls and reply of a task.

    Attributes:
        calls: Objects {tool, arguments, any}; the optional `any` lists names of arguments that are ignored.
        is_parallel: Whether the calls must be in one message.
        reply_texts: Texts that the final text must contain as whole words; case is ignored.
        needs_question: Whether the final text must contain a question mark.
        fault_codes: Error codes with which the faults of the tools make calls fail.
        permits_repeats: Whether an expected call may be made again.
        has_one_turn: Whether the run is limited to one turn, so that it may end at that limit.
    """

    calls: tuple[JsonObject, ...]
    is_parallel: bool = False
    reply_texts: tuple[str, ...] = ()
    needs_question: bool = False
    fault_codes: tuple[str, ...] = ()
    permits_repeats: bool = False
    has_one_turn: bool = True


@dataclass(frozen=True, slots=True)
class JsonDifference:
    """A difference between two JSON values.

    Attributes:
        expected: The expected value; ABSENT if none was expected at the path.
        given: The value that the model gave; ABSENT if it gave none.
    """

    path: str
    expected: object
    given: object

    def describe(self) -> str:
        """Return the difference as a sentence."""
        if self.expected is ABSENT:
            return f"{self.path} is {render_short(self.given)}; no value is expected there."
        given = "missing" if self.given is ABSENT else render_short(self.given)
        return f"{self.path} is {given}; {render_short(self.expected)} is expected."


@dataclass(frozen=True, slots=True)
class _UnmatchedCalls:
    """Expected calls that were not made and successful calls that were not expected."""

    missing: tuple[JsonObject, ...]
    extra: tuple[RecordedCall, ...]


def judge(instance: Instance, loop_result: LoopResult, expected: TaskExpectation) -> Verdict:
    """Return the verdict by calls and reply.

    The case study's rule is not applied, because the case study has no such scenario.
    """
    unmatched = _find_unmatched_calls(loop_result, expected)
    checks = (*_build_call_checks(loop_result, expected, unmatched), *_build_reply_checks(loop_result, expected))
    fault_codes = set(expected.fault_codes)
    has_fault = any(fault_codes & set(list_error_codes(call.result)) for call in iter_calls(loop_result))
    may_reach_limit = expected.has_one_turn and bool(expected.calls)
    checked = verdict.CheckedResult(
        instance=instance,
        loop_result=loop_result,
        rule=_render_rule(expected),
        checks=checks,
        case_study_checks=None,
        fallback_problem=_find_problem(loop_result, expected, unmatched),
        good_ends=frozenset({EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED} if may_reach_limit else {EndReason.FINAL}),
        needs_tools=bool(expected.calls),
        behaviour_seen=has_fault if fault_codes else None,
        avoided=bool(fault_codes) and not has_fault and all(check.ok for check in checks),
        expected_codes=expected.fault_codes,
    )
    return verdict.judge(checked)


def build_expected_calls(expected: TaskExpectation, provoked_causes: Sequence[str] = ()) -> ExpectedCalls:
    """Return the expected calls of a task; if it has none, no call is needed.

    Args:
        expected: The expected calls and reply.
        provoked_causes: Codes of causes that the task itself provokes, one entry per step with the cause.
    """
    calls = tuple(
        ExpectedToolCall(
            expected_call["tool"],
            partial(_has_right_arguments, expected_call),
            partial(_list_wrong_paths, expected_call),
            expected_call["arguments"],
        )
        for expected_call in expected.calls
    )
    return ExpectedCalls(
        bool(calls),
        calls,
        provoked_causes=tuple(provoked_causes),
        parallel_calls=len(calls) if expected.is_parallel else 1,
        needs_reply=bool(expected.reply_texts) or expected.needs_question or not calls,
    )


def has_question_mark(text: str) -> bool:
    """Return whether the text has a question mark, which may be a fullwidth or an Arabic one."""
    return re.search(r"[?\uff1f\u061f]", text) is not None


def iter_differences(expected: Any, given: Any, path: str = "$") -> Iterator[JsonDifference]:
    """Yield the differences of two JSON values in the order of `expected`; none if they are equal.

    In an object, members that are not expected come last, and a null among them is no difference. Strings that differ
    only in case and in the amount of white space are equal. Arrays of different lengths are one difference.

    Args:
        expected: The expected value.
        given: The value that the model gave.
        path: The JSON path of both values, with which the paths of the differences begin.
    """
    if isinstance(expected, dict) and isinstance(given, dict):
        yield from _compare_objects(expected, given, path)
    elif isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        for index, (expected_item, given_item) in enumerate(zip(expected, given, strict=True)):
            yield from iter_differences(expected_item, given_item, f"{path}[{index}]")
    else:
        is_same = type(expected) is not bool and type(given) is not bool and _normalise(expected) == _normalise(given)
        if not is_same and expected is not given:
            yield JsonDifference(path, expected, given)


def _compare_objects(expected: JsonObject, given: JsonObject, path: str) -> Iterator[JsonDifference]:
    for key, value in expected.items():
        yield from iter_differences(value, given.get(key, ABSENT), f"{path}.{key}")
    for key, value in given.items():
        if key not in expected and value is not None:
            yield JsonDifference(f"{path}.{key}", ABSENT, value)


def _normalise(value: object) -> object:
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _iter_argument_differences(arguments: JsonObject | None, expected_call: JsonObject) -> Iterator[JsonDifference]:
    ignored = expected_call.get("any", ())
    given = {key: value for key, value in (arguments or {}).items() if key not in ignored}
    return iter_differences(expected_call["arguments"], given)


def _list_wrong_paths(expected_call: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
    return tuple(difference.path for difference in _iter_argument_differences(arguments, expected_call))


def _has_right_arguments(expected_call: JsonObject, arguments: JsonObject | None) -> bool:
    return not any(_iter_argument_differences(arguments, expected_call))


def _is_match(call: RecordedCall, expected_call: JsonObject) -> bool:
    return call.tool == expected_call["tool"] and _has_right_arguments(expected_call, call.result.arguments)


def _find_unmatched_calls(loop_result: LoopResult, expected: TaskExpectation) -> _UnmatchedCalls:
    made = [call for call in iter_calls(loop_result) if call.ok and not call.result.schema_errors]
    costs = [[0 if _is_match(call, expected_call) else NO_MATCH for call in made] for expected_call in expected.calls]
    matches = match_calls(costs)
    expected_made_indices = set(matches.values())
    if expected.permits_repeats:
        expected_made_indices |= {index for row in costs for index, cost in enumerate(row) if cost != NO_MATCH}
    missing = tuple(call for index, call in enumerate(expected.calls) if index not in matches)
    return _UnmatchedCalls(
        missing, tuple(call for index, call in enumerate(made) if index not in expected_made_indices)
    )


def _build_call_checks(
    loop_result: LoopResult, expected: TaskExpectation, unmatched: _UnmatchedCalls
) -> tuple[Check, ...]:
    if not expected.calls:
        return (Check("calls no tool", not has_started_calls(loop_result)),)
    names = ", ".join(expected_call["tool"] for expected_call in unmatched.missing)
    checks = [
        Check("every expected call is made", not unmatched.missing, f"missing: {names}" if names else ""),
        Check("no other call succeeds", not unmatched.extra),
    ]
    if expected.is_parallel:
        checks.append(Check("the calls come in one message", _has_parallel_calls(loop_result, expected)))
    return tuple(checks)


def _has_parallel_calls(loop_result: LoopResult, expected: TaskExpectation) -> bool:
    return any(count_calls(record) >= len(expected.calls) for record in loop_result.turns)


def _build_reply_checks(loop_result: LoopResult, expected: TaskExpectation) -> tuple[Check, ...]:
    detail = f"the final text is {loop_result.final_text[:80]!r}"
    checks = [_check_reply_text(text, loop_result.final_text, detail) for text in expected.reply_texts]
    if expected.needs_question:
        has_question = has_question_mark(loop_result.final_text)
        checks.append(Check("asks for what is missing", has_question, "" if has_question else detail))
    if not expected.calls and not checks:
        checks.append(Check("the reply is not blank", not is_blank(loop_result.final_text)))
    return tuple(checks)


def _check_reply_text(text: str, final_text: str, detail: str) -> Check:
    is_present = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", final_text, re.IGNORECASE) is not None
    return Check(f"the reply says {text}", is_present, "" if is_present else detail)


def _render_rule(expected: TaskExpectation) -> str:
    calls = ", ".join(
        f"{expected_call['tool']} {render_short(expected_call['arguments'])}" for expected_call in expected.calls
    )
    parts = [RULE.format(calls=calls) if calls else NO_CALL_RULE]
    parts += ["All in one message."] if expected.is_parallel else []
    parts += [f"The reply says {', '.join(expected.reply_texts)}."] if expected.reply_texts else []
    parts += ["The reply asks for what is missing."] if expected.needs_question else []
    return " ".join(parts)


def _find_problem(loop_result: LoopResult, expected: TaskExpectation, unmatched: _UnmatchedCalls) -> Problem:
    """Return the problem to report if the trial fails although diagnosis finds no problem in its run."""
    if not expected.calls and has_calls(loop_result):
        turn = next(record.turn for record in loop_result.turns if count_calls(record))
        return Problem(
            "needless_call",
            locate_problem(turn, path=CALLS_PATH, sentence="a tool is called; the task needs none."),
        )
    if expected.calls and not has_calls(loop_result):
        return NO_TOOL_CALLS_PROBLEM
    if unmatched.extra:
        return _diagnose_extra_call(unmatched.extra[0], unmatched.missing, expected.calls)
    last_turn = find_last_turn(loop_result)
    if unmatched.missing:
        sentence = f"the run ends here; no call of {unmatched.missing[0]['tool']} has the expected arguments."
        return Problem("missing_call", locate_problem(last_turn, path=CALLS_PATH, sentence=sentence))
    if expected.is_parallel and not _has_parallel_calls(loop_result, expected):
        sentence = f"this message and all later ones have fewer than {len(expected.calls)} calls."
        return Problem("not_parallel", locate_problem(0, path=CALLS_PATH, sentence=sentence))
    failed_check = next((check for check in _build_reply_checks(loop_result, expected) if not check.ok), None)
    return Problem(
        "wrong_reply",
        locate_problem(
            last_turn,
            path=CONTENT_PATH,
            sentence=f"{failed_check.detail if failed_check else 'there is no reply'}.",
        ),
    )


def _diagnose_extra_call(call: RecordedCall, missing: Sequence[JsonObject], calls: Sequence[JsonObject]) -> Problem:
    names = [expected_call["tool"] for expected_call in calls]
    if call.tool not in names:
        sentence = f"{call.tool} was called; the task needs {', '.join(dict.fromkeys(names))}."
        return Problem("wrong_tool", locate_problem(call.turn, call=call.index, sentence=sentence))
    missing_call = next((expected_call for expected_call in missing if expected_call["tool"] == call.tool), None)
    difference = next(_iter_argument_differences(call.result.arguments, missing_call), None) if missing_call else None
    if difference is None:
        sentence = f"{call.tool} was called more often than the task needs."
        return Problem("too_many_calls", locate_problem(call.turn, call=call.index, sentence=sentence))
    return Problem(
        "wrong_arguments",
        locate_problem(call.turn, call=call.index, path=difference.path, sentence=difference.describe()),
    )
