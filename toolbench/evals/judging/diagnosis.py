"""Diagnosis of a finished run: every problem in order, and whether a later step recovered from it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolbench.engine.events import LoopResult, ToolResult, TurnRecord
from toolbench.engine.light_dataclass import light
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Turn
from toolbench.engine.visible_text import is_blank
from toolbench.evals.judging import failure_classes, messages
from toolbench.evals.record_counts import (
    CALLS_PATH,
    CONTENT_PATH,
    FINISH_REASON_PATH,
    TRUNCATED_FINISH_REASON,
    RecordedCall,
    has_call_tag,
    iter_calls,
    list_error_codes,
)
from toolbench.evals.types import ProblemLocation

BROKEN_SCHEMA_CLASS = "arguments_break_schema"


@light(frozen=True, slots=True)
class Problem:
    """A problem in a finished run.

    Attributes:
        failure_class: A code of the table of failure classes.
        location: The location of the problem, with its sentence.
        code: The first error code of a failed call, or the error code of a failed exchange; "" for other problems.
        recovered: Whether a later step recovered from it.
    """

    failure_class: str
    location: ProblemLocation
    code: str = ""
    recovered: bool = False


def find_first_problem(
    loop_result: LoopResult, tools: Sequence[ToolDefinition], *, expected_codes: Sequence[str] = ()
) -> Problem | None:
    """Return the first problem without recovery; None if there is none.

    Args:
        loop_result: The finished run.
        tools: The tools offered.
        expected_codes: Error codes that the task provokes. If the first problem without recovery has one of them, the
            result is the problem `gave_up_after_error` instead, unless the call broke the tool's schema.
    """
    for problem in iter_problems(loop_result, tools):
        if problem.recovered:
            continue
        is_expected = problem.code in expected_codes and problem.failure_class != BROKEN_SCHEMA_CLASS
        return _diagnose_gave_up(loop_result, problem) if is_expected else problem
    return None


def iter_problems(loop_result: LoopResult, tools: Sequence[ToolDefinition]) -> Iterator[Problem]:
    """Yield every problem in the order of the steps, including those that a later step recovered from."""
    by_name = {tool.name: tool for tool in tools}
    last_success = _find_last_successes(loop_result)
    for number, record in enumerate(loop_result.turns):
        later = loop_result.turns[number + 1 :]
        if record.failure is not None:
            yield _diagnose_exchange(record, recovered=any(turn.answer for turn in later))
        if record.answer is not None:
            has_earlier_results = any(turn.results for turn in loop_result.turns[:number])
            yield from _diagnose_answer(record, record.answer, later, has_earlier_results=has_earlier_results)
        for call in iter_calls(replace(loop_result, turns=(record,))):
            if not call.ok:
                success = last_success.get(call.tool)
                recovered = success is not None and success > (number, call.index)
                yield _diagnose_call(call, by_name.get(call.tool), recovered=recovered)


def locate_problem(turn: int, *, call: int | None = None, path: str = "$", sentence: str) -> ProblemLocation:
    """Return the location of a problem; its sentence begins with the turn and, if given, the call, both from 1.

    Args:
        turn: The turn, from 0.
        call: The index of the call in the turn, from 0; None if the problem concerns no call.
        path: The JSON path of the problem.
        sentence: The problem in words, beginning with a small letter.
    """
    prefix = f"Turn {turn + 1}" if call is None else f"Turn {turn + 1}, parsed call {call + 1}"
    return ProblemLocation(turn, call, path, f"{prefix}: {sentence}")


def find_last_turn(loop_result: LoopResult) -> int:
    """Return the number of the last turn, from 0; 0 without turns."""
    return loop_result.turns[-1].turn if loop_result.turns else 0


NO_TOOL_CALLS_PROBLEM = Problem(
    "no_tool_calls", locate_problem(0, path=CALLS_PATH, sentence="the answer is text and calls no tool.")
)
"""The problem of a run without calls, if the task needs a call."""


def _diagnose_exchange(record: TurnRecord, *, recovered: bool) -> Problem:
    assert record.failure is not None
    sentence = (
        record.failure.message
        or failure_classes.lookup_class(failure_classes.classify_exchange_error(record.failure)).sentence
    )
    return Problem(
        failure_classes.classify_exchange_error(record.failure),
        locate_problem(record.turn, sentence=sentence),
        record.failure.code,
        recovered,
    )


def _diagnose_answer(
    record: TurnRecord, answer: Turn, later: Sequence[TurnRecord], *, has_earlier_results: bool
) -> Iterator[Problem]:
    if answer.finish_reason == TRUNCATED_FINISH_REASON and not any(result.envelope.ok for result in record.results):
        sentence = "the answer was truncated at the token limit (finish_reason length)."
        yield Problem(
            "cut_by_length",
            locate_problem(record.turn, path=FINISH_REASON_PATH, sentence=sentence),
            recovered=_has_success(later),
        )
    if answer.calls:
        return
    for finding in answer.findings:
        if failure_class := failure_classes.classify_finding(finding):
            is_tagged = failure_class == "text_instead_of_call" and has_call_tag(answer)
            sentence = finding.message[:1].lower() + finding.message[1:]
            yield Problem(
                "call_in_tags" if is_tagged else failure_class,
                locate_problem(record.turn, path=finding.path, sentence=sentence),
                recovered=_has_success(later),
            )
    if is_blank(answer.text):
        failure_class, suffix = ("empty_final", " after the calls") if has_earlier_results else ("empty_answer", "")
        sentence = f"the answer{suffix} is empty: no visible text and no call."
        yield Problem(
            failure_class,
            locate_problem(record.turn, path=CONTENT_PATH, sentence=sentence),
            recovered=_has_output(later),
        )


def _diagnose_call(call: RecordedCall, tool: ToolDefinition | None, *, recovered: bool) -> Problem:
    codes = list_error_codes(call.result)
    failure_class, path, sentence = _describe_failed_call(call.result, call.tool, tool)
    return Problem(
        failure_class,
        locate_problem(call.turn, call=call.index, path=path, sentence=sentence),
        codes[0] if codes else "",
        recovered,
    )


def _describe_failed_call(result: ToolResult, name: str, tool: ToolDefinition | None) -> tuple[str, str, str]:
    """Return failure class, JSON path and sentence of a failed call."""
    if result.schema_errors and tool is not None:
        error = result.schema_errors[0]
        return BROKEN_SCHEMA_CLASS, error.path, messages.describe_schema_error(error, result.arguments, tool)
    failure_class = failure_classes.classify_error_codes(list_error_codes(result))
    if failure_class == "arguments_not_json":
        return failure_class, "$", f"the arguments of {name} are not a JSON object."
    if failure_class == "unknown_tool":
        return failure_class, "$", f"there is no tool called {messages.render_short(result.call.name)}."
    message = next((str(error.get("message", "")) for error in result.envelope.errors), "")
    return failure_class, "$", f"{name} failed: {message.rstrip('.') or 'it gave no reason'}."


def _diagnose_gave_up(loop_result: LoopResult, problem: Problem) -> Problem:
    """Return the problem `gave_up_after_error` for `problem`, an error from which no later call recovered.

    Its location is the first later turn without a call; if there is none, the last turn.
    """
    later = (record.turn for record in loop_result.turns if record.turn > problem.location.turn and not record.results)
    sentence = f"no later call recovers from the {problem.code} of turn {problem.location.turn + 1}."
    return Problem(
        "gave_up_after_error",
        locate_problem(next(later, find_last_turn(loop_result)), path=CALLS_PATH, sentence=sentence),
        problem.code,
    )


def _find_last_successes(loop_result: LoopResult) -> dict[str, tuple[int, int]]:
    """Return the turn and the index in the turn, both from 0, of each tool's last successful call."""
    return {
        result.envelope.tool_name: (number, index)
        for number, record in enumerate(loop_result.turns)
        for index, result in enumerate(record.results)
        if result.envelope.ok
    }


def _has_success(later: Sequence[TurnRecord]) -> bool:
    return any(result.envelope.ok for record in later for result in record.results)


def _has_output(later: Sequence[TurnRecord]) -> bool:
    return any(record.answer and (record.answer.calls or not is_blank(record.answer.text)) for record in later)
