"""The checks that a test case may have: rows of a closed set of kinds, so that no user input is executed.

Rows about the final text (case is ignored):

- {"answer_contains": text}, {"answer_lacks": text}: the final text contains the text, or does not
- {"answer_is": text}: the final text is the text; white space at both ends is ignored
- {"answer_names": text}: the final text contains the text as whole words
- {"answer_given": true}: the final text is not blank
- {"answer_asks": true}: the final text contains a question mark
- {"answer_done": true}: the final text is the case study's final sentence

Rows about calls:

- {"called": tool, "times": n}: the tool has exactly n valid calls; without `times` at least one
- {"not_called": tool}, or {"called": tool, "times": 0}: the tool has no call, valid or not
- {"calls_at_most": n}: at most n calls are made, valid or not
- {"before": [first, second]}: the tool `first` has a valid call, and before any call of the tool `second`
- {"together": n}: one message has at least n calls
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from toolbench.engine.events import LoopResult
from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.evals.judging.case_study_rule import is_done_sentence
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import count_calls, is_valid_call, iter_calls
from toolbench.evals.scenarios.expected import has_question_mark
from toolbench.evals.types import Check
from toolbench.evals.user_cases.number_checks import is_whole_number

CHECK_KINDS = (
    "answer_contains",
    "answer_lacks",
    "answer_is",
    "answer_names",
    "answer_given",
    "answer_asks",
    "answer_done",
    "called",
    "not_called",
    "calls_at_most",
    "together",
    "before",
)
_FLAG_KINDS = ("answer_given", "answer_asks", "answer_done")


def run_check(row: JsonObject, loop_result: LoopResult) -> Check:
    """Return the result of a check; the row must be valid."""
    return _CHECK_BY_KIND[_find_kind(row)](row, loop_result)


def find_failure_class(row: JsonObject, loop_result: LoopResult) -> str:
    """Return the failure class of a trial whose first failed check is this valid row."""
    kind = _find_kind(row)
    if kind == "called" and row.get("times") != 0:
        return "missing_call" if _count_called(row, loop_result) < row.get("times", 1) else "too_many_calls"
    if kind == "before":
        return "wrong_order" if _count_called({"called": row["before"][0]}, loop_result) else "missing_call"
    return _CLASS_BY_KIND.get(kind, "wrong_reply")


def _find_kind(row: JsonObject) -> str:
    return next(name for name in CHECK_KINDS if name in row)


def iter_check_problems(row: Any, tools: Collection[str]) -> Iterator[str]:
    """Yield each mistake in a row as a sentence.

    Args:
        row: The row, any JSON value.
        tools: The names of the case's tools.
    """
    kinds = [name for name in CHECK_KINDS if name in row] if isinstance(row, Mapping) else []
    if len(kinds) != 1:
        yield f"A check must be an object with exactly one of {', '.join(CHECK_KINDS)}."
        return
    kind = kinds[0]
    value = row[kind]
    if kind == "calls_at_most":
        is_valid = is_whole_number(value, 0)
    elif kind == "together":
        is_valid = is_whole_number(value, 2)
    elif kind in _FLAG_KINDS:
        is_valid = value is True
    elif kind == "before":
        is_valid = isinstance(value, list) and len(value) == 2 and all(isinstance(name, str) for name in value)
    else:
        is_valid = isinstance(value, str) and bool(value)
    if not is_valid:
        yield f"{kind} takes {_VALUE_DESCRIPTIONS.get(kind, 'a text')}."
        return
    names = value if kind == "before" else [value] if kind in ("called", "not_called") else []
    yield from (f"There is no tool {name} in this test case." for name in names if name not in tools)
    if unknown := sorted(set(row) - {kind} - ({"times"} if kind == "called" else set())):
        yield f"{unknown[0]} has no effect beside {kind}: remove it."
    if not is_whole_number(row.get("times", 1), 0):
        yield "times takes a whole number from 0."


def _list_called_tools(loop_result: LoopResult) -> list[str]:
    return [call.tool for call in iter_calls(loop_result)]


def _check_contains(row: JsonObject, loop_result: LoopResult) -> Check:
    text = row["answer_contains"]
    return _build_answer_check(
        f"the answer contains {render_short(text)}", text.casefold() in loop_result.final_text.casefold(), loop_result
    )


def _check_lacks(row: JsonObject, loop_result: LoopResult) -> Check:
    text = row["answer_lacks"]
    return _build_answer_check(
        f"the answer lacks {render_short(text)}", text.casefold() not in loop_result.final_text.casefold(), loop_result
    )


def _check_is(row: JsonObject, loop_result: LoopResult) -> Check:
    text = row["answer_is"]
    is_equal = text.strip().casefold() == loop_result.final_text.strip().casefold()
    return _build_answer_check(f"the answer is {render_short(text)}", is_equal, loop_result)


def _check_called(row: JsonObject, loop_result: LoopResult) -> Check:
    tool, times = row["called"], row.get("times")
    made_count, counted = _list_called_tools(loop_result).count(tool), _count_called(row, loop_result)
    invalid_count = made_count - _count_called({"called": tool}, loop_result)
    name = f"{tool} is called" + ("" if times is None else f" {times} times")
    detail = f"it was called {made_count} times" + (f", {invalid_count} of them not valid" if invalid_count else "")
    return Check(name, counted >= 1 if times is None else counted == times, detail)


def _count_called(row: JsonObject, loop_result: LoopResult) -> int:
    """Return the number of calls that count for a `called` row: for 0 times all of its tool, else the valid ones."""
    calls = [call for call in iter_calls(loop_result) if call.tool == row["called"]]
    return len(calls) if row.get("times") == 0 else sum(is_valid_call(call.result) for call in calls)


def _check_not_called(row: JsonObject, loop_result: LoopResult) -> Check:
    count = _list_called_tools(loop_result).count(row["not_called"])
    return Check(f"{row['not_called']} is not called", not count, f"it was called {count} times" if count else "")


def _check_at_most(row: JsonObject, loop_result: LoopResult) -> Check:
    count = len(_list_called_tools(loop_result))
    return Check(f"at most {row['calls_at_most']} calls", count <= row["calls_at_most"], f"calls made: {count}")


def _check_before(row: JsonObject, loop_result: LoopResult) -> Check:
    first, second = row["before"]
    decisive_tools = (
        call.tool
        for call in iter_calls(loop_result)
        if call.tool == second or (call.tool == first and is_valid_call(call.result))
    )
    return Check(f"{first} before {second}", next(decisive_tools, second) != second)


def _check_names(row: JsonObject, loop_result: LoopResult) -> Check:
    text = row["answer_names"]
    is_named = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", loop_result.final_text, re.IGNORECASE) is not None
    return _build_answer_check(f"the answer names {render_short(text)}", is_named, loop_result)


def _check_given(row: JsonObject, loop_result: LoopResult) -> Check:
    return _build_answer_check("the answer is not blank", not is_blank(loop_result.final_text), loop_result)


def _check_asks(row: JsonObject, loop_result: LoopResult) -> Check:
    return _build_answer_check("the answer asks a question", has_question_mark(loop_result.final_text), loop_result)


def _check_done(row: JsonObject, loop_result: LoopResult) -> Check:
    return _build_answer_check("the answer is Done.", is_done_sentence(loop_result.final_text), loop_result)


def _check_together(row: JsonObject, loop_result: LoopResult) -> Check:
    max_calls = max(map(count_calls, loop_result.turns), default=0)
    name = f"{row['together']} calls in one message"
    return Check(name, max_calls >= row["together"], f"a message has at most {max_calls}")


def _build_answer_check(name: str, ok: bool, loop_result: LoopResult) -> Check:
    return Check(name, ok, "" if ok else f"the answer is {render_short(loop_result.final_text)}")


_CHECK_BY_KIND: Mapping[str, Callable[[JsonObject, LoopResult], Check]] = {
    "answer_contains": _check_contains,
    "answer_lacks": _check_lacks,
    "answer_is": _check_is,
    "answer_names": _check_names,
    "answer_given": _check_given,
    "answer_asks": _check_asks,
    "answer_done": _check_done,
    "called": _check_called,
    "not_called": _check_not_called,
    "calls_at_most": _check_at_most,
    "together": _check_together,
    "before": _check_before,
}
_CLASS_BY_KIND = {
    "called": "wrong_tool",  # 0 times
    "not_called": "wrong_tool",
    "calls_at_most": "too_many_calls",
    "together": "not_parallel",
}
_VALUE_DESCRIPTIONS = {
    "calls_at_most": "a whole number from 0",
    "together": "a whole number from 2",
    "before": "a list of two tools",
    "called": "a tool's name",
    **dict.fromkeys(_FLAG_KINDS, "true"),
}
