"""Judging a task by its expected calls, each made once, and by the required reply."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import Problem, find_last_turn, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import (
    CALLS_PATH,
    CONTENT_PATH,
    RecordedCall,
    count_calls,
    has_calls,
    iter_calls,
    list_error_codes,
)
from toolbench.evals.types import Check, Instance, Verdict

RULE = "Every wanted call is made once with the wanted arguments ({calls}), and no other call succeeds."
NO_CALL_RULE = "No tool is called, and the reply says something."
ABSENT = object()


@dataclass(frozen=True, slots=True)
class TaskExpectation:
    """The expected calls and reply of a task.

    Attributes:
        calls: Objects {tool, arguments, any}; `any` names arguments that are ignored.
        together: Whether the calls must be in one message.
        reply: Texts that the final text must contain.
        question: Whether the final text must ask a question.
        faults: Error codes that belong to the task.
        repeats: Whether an expected call may be made again.
        one_turn: Whether the task may end by running out of turns.
    """

    calls: tuple[JsonObject, ...]
    together: bool = False
    reply: tuple[str, ...] = ()
    question: bool = False
    faults: tuple[str, ...] = ()
    repeats: bool = False
    one_turn: bool = True


@dataclass(frozen=True, slots=True)
class JsonDifference:
    """A difference of two JSON values; ABSENT stands for a missing value."""

    path: str
    expected: object
    given: object

    def describe(self) -> str:
        """Return the difference as a sentence."""
        if self.expected is ABSENT:
            return f"{self.path} is {render_short(self.given)}; nothing was asked for there."
        given = "missing" if self.given is ABSENT else render_short(self.given)
        return f"{self.path} is {given}; {render_short(self.expected)} was asked for."


@dataclass(frozen=True, slots=True)
class _MatchedCalls:
    """Expected calls that were not made and successful calls that were not expected."""

    missing: tuple[JsonObject, ...]
    extra: tuple[RecordedCall, ...]


def judge(instance: Instance, ended: LoopResult, expected: TaskExpectation) -> Verdict:
    """Return the verdict. The case study has no such scenario, so its rule is not applied."""
    matched = _match_calls(ended, expected)
    checks = (*_build_call_checks(ended, expected, matched), *_build_reply_checks(ended, expected))
    faults = tuple(expected.faults)
    seen = any(set(list_error_codes(call.result)) & set(faults) for call in iter_calls(ended)) if faults else None
    good = (
        {EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED} if expected.one_turn and expected.calls else {EndReason.FINAL}
    )
    case = verdict.CheckedResult(
        instance=instance,
        ended=ended,
        rule=_render_rule(expected),
        checks=checks,
        case_study_checks=None,
        fallback_problem=_find_problem(ended, expected, matched),
        good_ends=frozenset(good),
        needs_tools=bool(expected.calls),
        behaviour_seen=seen,
        avoided=seen is False and all(check.ok for check in checks),
        expected=faults,
    )
    return verdict.judge(case)


def build_expected_calls(expected: TaskExpectation, provoked: Sequence[str] = ()) -> ExpectedCalls:
    """Return the expected calls; without any, no call is needed. `provoked` is as in TaskNeeds."""
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
        provoked=tuple(provoked),
        together=len(calls) if expected.together else 1,
        reply=bool(expected.reply) or expected.question or not calls,
    )


def iter_differences(expected: Any, given: Any, path: str = "$") -> Iterator[JsonDifference]:
    """Yield the differences of two JSON values, in the order of `expected`; none if they are equal.

    Case and white space around and between words are ignored, as is a null for a value that was not asked for.
    """
    if isinstance(expected, dict) and isinstance(given, dict):
        yield from _compare_objects(expected, given, path)
    elif isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        for place, (expected_item, given_item) in enumerate(zip(expected, given, strict=True)):
            yield from iter_differences(expected_item, given_item, f"{path}[{place}]")
    else:
        same = type(expected) is not bool and type(given) is not bool and _normalise(expected) == _normalise(given)
        if not same and expected is not given:
            yield JsonDifference(path, expected, given)


def _compare_objects(expected: JsonObject, given: JsonObject, path: str) -> Iterator[JsonDifference]:
    for key, value in expected.items():
        yield from iter_differences(value, given.get(key, ABSENT), f"{path}.{key}")
    for key, value in given.items():
        if key not in expected and value is not None:
            yield JsonDifference(f"{path}.{key}", ABSENT, value)


def _normalise(value: object) -> object:
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _compare_arguments(arguments: JsonObject | None, expected: JsonObject) -> JsonDifference | None:
    return next(_iter_argument_differences(arguments, expected), None)


def _iter_argument_differences(arguments: JsonObject | None, expected: JsonObject) -> Iterator[JsonDifference]:
    free = expected.get("any", ())
    given = {key: value for key, value in (arguments or {}).items() if key not in free}
    return iter_differences(expected["arguments"], given)


def _list_wrong_paths(expected_call: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
    return tuple(difference.path for difference in _iter_argument_differences(arguments, expected_call))


def _has_right_arguments(expected_call: JsonObject, arguments: JsonObject) -> bool:
    return _compare_arguments(arguments, expected_call) is None


def _is_match(call: RecordedCall, expected_call: JsonObject) -> bool:
    return call.tool == expected_call["tool"] and _compare_arguments(call.result.arguments, expected_call) is None


def _match_calls(ended: LoopResult, expected: TaskExpectation) -> _MatchedCalls:
    missing, extra = list(expected.calls), []
    for call in iter_calls(ended):
        if not call.ok or call.result.schema_errors:
            continue
        hit = next((expected_call for expected_call in missing if _is_match(call, expected_call)), None)
        if hit is not None:
            missing.remove(hit)
        elif not (expected.repeats and any(_is_match(call, expected_call) for expected_call in expected.calls)):
            extra.append(call)
    return _MatchedCalls(tuple(missing), tuple(extra))


def _build_call_checks(ended: LoopResult, expected: TaskExpectation, matched: _MatchedCalls) -> tuple[Check, ...]:
    if not expected.calls:
        return (Check("calls no tool", not has_calls(ended)),)
    names = ", ".join(expected_call["tool"] for expected_call in matched.missing)
    checks = [
        Check("every wanted call is made", not matched.missing, f"missing: {names}" if names else ""),
        Check("no other call succeeds", not matched.extra),
    ]
    if expected.together:
        checks.append(Check("the calls come in one message", _has_parallel_calls(ended, expected)))
    return tuple(checks)


def _has_parallel_calls(ended: LoopResult, expected: TaskExpectation) -> bool:
    return any(count_calls(record) >= len(expected.calls) for record in ended.turns)


def _build_reply_checks(ended: LoopResult, expected: TaskExpectation) -> tuple[Check, ...]:
    detail = f"the final text is {ended.final_text[:80]!r}"
    checks = [_check_reply_text(text, ended.final_text, detail) for text in expected.reply]
    if expected.question:
        asks = re.search(r"[??؟]", ended.final_text) is not None
        checks.append(Check("asks for what is missing", asks, "" if asks else detail))
    if not expected.calls and not checks:
        checks.append(Check("says something", not is_blank(ended.final_text)))
    return tuple(checks)


def _check_reply_text(text: str, final: str, detail: str) -> Check:
    found = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", final, re.IGNORECASE) is not None
    return Check(f"the reply says {text}", found, "" if found else detail)


def _render_rule(expected: TaskExpectation) -> str:
    calls = ", ".join(
        f"{expected_call['tool']} {render_short(expected_call['arguments'])}" for expected_call in expected.calls
    )
    parts = [RULE.format(calls=calls) if calls else NO_CALL_RULE]
    parts += ["All in one message."] if expected.together else []
    parts += [f"The reply says {', '.join(expected.reply)}."] if expected.reply else []
    parts += ["The reply asks for what is missing."] if expected.question else []
    return " ".join(parts)


def _find_problem(ended: LoopResult, expected: TaskExpectation, matched: _MatchedCalls) -> Problem:
    """Return the problem if every call succeeded and the trial still fails."""
    if not expected.calls and has_calls(ended):
        turn = next(record.turn for record in ended.turns if count_calls(record))
        return Problem(
            "needless_call", locate_problem(turn, path=CALLS_PATH, sentence="a tool is called, and none is wanted.")
        )
    if expected.calls and not has_calls(ended):
        return Problem(
            "no_tool_calls", locate_problem(0, path=CALLS_PATH, sentence="the answer is text and calls no tool.")
        )
    if matched.extra:
        return _diagnose_extra_call(matched.extra[0], matched.missing, expected.calls)
    last = find_last_turn(ended)
    if matched.missing:
        sentence = f"the run ends here; {matched.missing[0]['tool']} was not called as wanted."
        return Problem("missing_call", locate_problem(last, path=CALLS_PATH, sentence=sentence))
    if expected.together and not _has_parallel_calls(ended, expected):
        sentence = f"this message and all later ones hold fewer than {len(expected.calls)} calls."
        return Problem("not_parallel", locate_problem(0, path=CALLS_PATH, sentence=sentence))
    wrong = next((check for check in _build_reply_checks(ended, expected) if not check.ok), None)
    return Problem(
        "wrong_reply",
        locate_problem(last, path=CONTENT_PATH, sentence=f"{wrong.detail if wrong else 'there is no reply'}."),
    )


def _diagnose_extra_call(call: RecordedCall, missing: Sequence[JsonObject], calls: Sequence[JsonObject]) -> Problem:
    names = [expected_call["tool"] for expected_call in calls]
    if call.tool not in names:
        sentence = f"{call.tool} was called; the task needs {', '.join(dict.fromkeys(names))}."
        return Problem("wrong_tool", locate_problem(call.turn, call=call.place, sentence=sentence))
    same_tool = next((expected_call for expected_call in missing if expected_call["tool"] == call.tool), None)
    found = _compare_arguments(call.result.arguments, same_tool) if same_tool else None
    if found is None:
        sentence = f"{call.tool} was called once more than wanted."
        return Problem("too_many_calls", locate_problem(call.turn, call=call.place, sentence=sentence))
    return Problem(
        "wrong_arguments", locate_problem(call.turn, call=call.place, path=found.path, sentence=found.describe())
    )
