"""Where a trial went wrong first: every problem a record shows, in order, each with what made it good again."""

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
    """`mended` is true when a later step made it good; `code` is the envelope's error code where a call failed."""

    failure_class: str
    bad: ProblemLocation
    code: str = ""
    mended: bool = False


def find_first_problem(
    ended: LoopResult, tools: Sequence[ToolDefinition], *, expected: Sequence[str] = ()
) -> Problem | None:
    """The first problem that nothing made good, or None. `expected` are error codes that belong to the task: such an
    error is no problem, but leaving it unmended is one."""
    for problem in iter_problems(ended, tools):
        if problem.mended:
            continue
        as_expected = problem.code in expected and problem.failure_class != BROKEN_SCHEMA_CLASS
        return _diagnose_gave_up(ended, problem) if as_expected else problem
    return None


def iter_problems(ended: LoopResult, tools: Sequence[ToolDefinition]) -> Iterator[Problem]:
    """Every problem in order of its step, mended or not."""
    by_name = {tool.name: tool for tool in tools}
    last_success = _find_last_successes(ended)
    for number, record in enumerate(ended.turns):
        later = ended.turns[number + 1 :]
        if record.failure is not None:
            yield _diagnose_exchange(record, mended=any(one.answer for one in later))
        if record.answer is not None:
            called_before = any(one.results for one in ended.turns[:number])
            yield from _diagnose_answer(record, record.answer, later, called_before=called_before)
        for one in iter_calls(replace(ended, turns=(record,))):
            if not one.ok:
                last = last_success.get(one.tool)
                mended = last is not None and last > (number, one.place)
                yield _diagnose_call(one, by_name.get(one.tool), mended=mended)


def locate_problem(turn: int, *, call: int | None = None, path: str = "$", what: str) -> ProblemLocation:
    """A place with its sentence: people count turns and calls from 1."""
    where = f"Turn {turn + 1}" if call is None else f"Turn {turn + 1}, parsed call {call + 1}"
    return ProblemLocation(turn, call, path, f"{where}: {what}")


def find_last_turn(ended: LoopResult) -> int:
    return ended.turns[-1].turn if ended.turns else 0


def _diagnose_exchange(record: TurnRecord, *, mended: bool) -> Problem:
    assert record.failure is not None
    what = (
        record.failure.message
        or failure_classes.lookup_class(failure_classes.classify_exchange_error(record.failure)).sentence
    )
    return Problem(
        failure_classes.classify_exchange_error(record.failure),
        locate_problem(record.turn, what=what),
        record.failure.code,
        mended,
    )


def _diagnose_answer(
    record: TurnRecord, answer: Turn, later: Sequence[TurnRecord], *, called_before: bool
) -> Iterator[Problem]:
    if answer.finish_reason == CUT_FINISH_REASON and not any(result.envelope.ok for result in record.results):
        what = "the answer was cut at the token limit (finish_reason length)."
        yield Problem(
            "cut_by_length", locate_problem(record.turn, path=FINISH_REASON_PATH, what=what), mended=_has_success(later)
        )
    if answer.calls:
        return
    known = [(failure_classes.classify_finding(finding), finding) for finding in answer.findings]
    for name, finding in known:
        if name:
            kind = "call_in_tags" if name == "text_instead_of_call" and has_call_tag(answer) else name
            what = finding.message[:1].lower() + finding.message[1:]
            yield Problem(kind, locate_problem(record.turn, path=finding.path, what=what), mended=_has_success(later))
    if is_blank(answer.text):
        name, when = ("empty_final", " after the calls") if called_before else ("empty_answer", "")
        what = f"the answer{when} is empty: no visible text and no call."
        yield Problem(name, locate_problem(record.turn, path=CONTENT_PATH, what=what), mended=_has_output(later))


def _diagnose_call(one: RecordedCall, tool: ToolDefinition | None, *, mended: bool) -> Problem:
    codes = list_error_codes(one.result)
    name, path, what = _describe_failed_call(one.result, one.tool, tool)
    return Problem(
        name, locate_problem(one.turn, call=one.place, path=path, what=what), codes[0] if codes else "", mended
    )


def _describe_failed_call(result: ToolResult, name: str, tool: ToolDefinition | None) -> tuple[str, str, str]:
    """Failure class, JSON path and sentence of a failed call."""
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
    """The first later turn without a call is where the model gave up; without one, the last turn."""
    later = (record.turn for record in ended.turns if record.turn > problem.bad.turn and not record.results)
    what = f"no call makes good the {problem.code} of turn {problem.bad.turn + 1}."
    return Problem(
        "gave_up_after_error",
        locate_problem(next(later, find_last_turn(ended)), path=CALLS_PATH, what=what),
        problem.code,
    )


def _find_last_successes(ended: LoopResult) -> dict[str, tuple[int, int]]:
    """By tool, where its last good result stands: the turn's number and the call's place in it, from 0."""
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
