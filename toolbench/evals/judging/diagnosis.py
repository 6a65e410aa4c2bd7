"""Diagnosis of a record: every problem in order, with whether a later step recovered from it."""

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
    CUT_FINISH_REASON,
    FINISH_REASON_PATH,
    RecordedCall,
    has_call_tag,
    iter_calls,
    list_error_codes,
)
from toolbench.evals.types import ProblemLocation

BROKEN_SCHEMA_CLASS = "arguments_break_schema"


@light(frozen=True, slots=True)
class Problem:
    """A problem in a record.

    Attributes:
        failure_class: A code of the table of failure classes.
        code: The error code of a failed call or exchange; "" for other problems.
        mended: Whether a later step recovered from it.
    """

    failure_class: str
    bad: ProblemLocation
    code: str = ""
    mended: bool = False


def find_first_problem(
    ended: LoopResult, tools: Sequence[ToolDefinition], *, expected: Sequence[str] = ()
) -> Problem | None:
    """Return the first problem without recovery; None if there is none.

    Args:
        ended: The record.
        tools: The tools offered.
        expected: Error codes that belong to the task. Such an error is no problem, but it is one not to recover from
            it.
    """
    for problem in iter_problems(ended, tools):
        if problem.mended:
            continue
        as_expected = problem.code in expected and problem.failure_class != BROKEN_SCHEMA_CLASS
        return _diagnose_gave_up(ended, problem) if as_expected else problem
    return None


def iter_problems(ended: LoopResult, tools: Sequence[ToolDefinition]) -> Iterator[Problem]:
    """Yield every problem in the order of the steps, also those that a later step recovered from."""
    by_name = {tool.name: tool for tool in tools}
    last_success = _find_last_successes(ended)
    for number, record in enumerate(ended.turns):
        later = ended.turns[number + 1 :]
        if record.failure is not None:
            yield _diagnose_exchange(record, mended=any(step.answer for step in later))
        if record.answer is not None:
            called_before = any(turn.results for turn in ended.turns[:number])
            yield from _diagnose_answer(record, record.answer, later, called_before=called_before)
        for call in iter_calls(replace(ended, turns=(record,))):
            if not call.ok:
                last = last_success.get(call.tool)
                mended = last is not None and last > (number, call.place)
                yield _diagnose_call(call, by_name.get(call.tool), mended=mended)


def locate_problem(turn: int, *, call: int | None = None, path: str = "$", sentence: str) -> ProblemLocation:
    """Return a location with its sentence, in which turns and calls count from 1."""
    where = f"Turn {turn + 1}" if call is None else f"Turn {turn + 1}, parsed call {call + 1}"
    return ProblemLocation(turn, call, path, f"{where}: {sentence}")


def find_last_turn(ended: LoopResult) -> int:
    """Return the number of the last turn, from 0; 0 without turns."""
    return ended.turns[-1].turn if ended.turns else 0


def _diagnose_exchange(record: TurnRecord, *, mended: bool) -> Problem:
    assert record.failure is not None
    sentence = (
        record.failure.message
        or failure_classes.lookup_class(failure_classes.classify_exchange_error(record.failure)).sentence
    )
    return Problem(
        failure_classes.classify_exchange_error(record.failure),
        locate_problem(record.turn, sentence=sentence),
        record.failure.code,
        mended,
    )


def _diagnose_answer(
    record: TurnRecord, answer: Turn, later: Sequence[TurnRecord], *, called_before: bool
) -> Iterator[Problem]:
    if answer.finish_reason == CUT_FINISH_REASON and not any(result.envelope.ok for result in record.results):
        sentence = "the answer was cut at the token limit (finish_reason length)."
        yield Problem(
            "cut_by_length",
            locate_problem(record.turn, path=FINISH_REASON_PATH, sentence=sentence),
            mended=_has_success(later),
        )
    if answer.calls:
        return
    known = [(failure_classes.classify_finding(finding), finding) for finding in answer.findings]
    for name, finding in known:
        if name:
            kind = "call_in_tags" if name == "text_instead_of_call" and has_call_tag(answer) else name
            sentence = finding.message[:1].lower() + finding.message[1:]
            yield Problem(
                kind, locate_problem(record.turn, path=finding.path, sentence=sentence), mended=_has_success(later)
            )
    if is_blank(answer.text):
        name, when = ("empty_final", " after the calls") if called_before else ("empty_answer", "")
        sentence = f"the answer{when} is empty: no visible text and no call."
        yield Problem(
            name, locate_problem(record.turn, path=CONTENT_PATH, sentence=sentence), mended=_has_output(later)
        )


def _diagnose_call(call: RecordedCall, tool: ToolDefinition | None, *, mended: bool) -> Problem:
    codes = list_error_codes(call.result)
    name, path, sentence = _describe_failed_call(call.result, call.tool, tool)
    return Problem(
        name,
        locate_problem(call.turn, call=call.place, path=path, sentence=sentence),
        codes[0] if codes else "",
        mended,
    )


def _describe_failed_call(result: ToolResult, name: str, tool: ToolDefinition | None) -> tuple[str, str, str]:
    """Return failure class, JSON path and sentence of a failed call."""
    if result.schema_errors and tool is not None:
        error = result.schema_errors[0]
        return BROKEN_SCHEMA_CLASS, error.path, messages.describe_schema_error(error, result.arguments, tool)
    kind = failure_classes.classify_envelope(list_error_codes(result))
    if kind == "arguments_not_json":
        return kind, "$", f"the arguments of {name} are not a JSON object."
    if kind == "unknown_tool":
        return kind, "$", f"there is no tool called {messages.render_short(result.call.name)}."
    message = next((str(error.get("message", "")) for error in result.envelope.errors), "")
    return kind, "$", f"{name} failed: {message.rstrip('.') or 'it gave no reason'}."


def _diagnose_gave_up(ended: LoopResult, problem: Problem) -> Problem:
    """Return the problem at the first later turn without a call, where the model gave up; else at the last turn."""
    later = (record.turn for record in ended.turns if record.turn > problem.bad.turn and not record.results)
    sentence = f"no call makes good the {problem.code} of turn {problem.bad.turn + 1}."
    return Problem(
        "gave_up_after_error",
        locate_problem(next(later, find_last_turn(ended)), path=CALLS_PATH, sentence=sentence),
        problem.code,
    )


def _find_last_successes(ended: LoopResult) -> dict[str, tuple[int, int]]:
    """Return for each tool the turn and the place of its last successful call, from 0."""
    return {
        result.envelope.tool_name: (number, place)
        for number, record in enumerate(ended.turns)
        for place, result in enumerate(record.results)
        if result.envelope.ok
    }


def _has_success(later: Sequence[TurnRecord]) -> bool:
    return any(result.envelope.ok for record in later for result in record.results)


def _has_output(later: Sequence[TurnRecord]) -> bool:
    return any(record.answer and (record.answer.calls or not is_blank(record.answer.text)) for record in later)
