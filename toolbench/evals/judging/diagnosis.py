"""Where a trial went wrong first: every problem a record shows, in order, each with what made it good again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolbench.engine.events import Ended, ToolResult, TurnRecord
from toolbench.engine.messages import Turn
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.values import light
from toolbench.engine.visible_text import is_blank
from toolbench.evals.judging import failure_classes, messages
from toolbench.evals.record_counts import CALLS, CONTENT, CUT, FINISH, Called, called, error_codes, has_call_tag
from toolbench.evals.types import FirstBad

BROKEN_SCHEMA = "arguments_break_schema"


@light(frozen=True, slots=True)
class Problem:
    """`mended` is true when a later step made it good; `code` is the envelope's error code where a call failed."""

    failure_class: str
    bad: FirstBad
    code: str = ""
    mended: bool = False


def first_problem(ended: Ended, tools: Sequence[ToolDefinition], *, expected: Sequence[str] = ()) -> Problem | None:
    """The first problem that nothing made good, or None. `expected` are error codes that belong to the task: such an
    error is no problem, but leaving it unmended is one."""
    for problem in problems(ended, tools):
        if problem.mended:
            continue
        as_expected = problem.code in expected and problem.failure_class != BROKEN_SCHEMA
        return _gave_up(ended, problem) if as_expected else problem
    return None


def problems(ended: Ended, tools: Sequence[ToolDefinition]) -> Iterator[Problem]:
    """Every problem in order of its step, mended or not."""
    by_name = {tool.name: tool for tool in tools}
    last_success = _last_successes(ended)
    for number, record in enumerate(ended.turns):
        later = ended.turns[number + 1 :]
        if record.failure is not None:
            yield _of_exchange(record, mended=any(one.answer for one in later))
        if record.answer is not None:
            called_before = any(one.results for one in ended.turns[:number])
            yield from _of_answer(record, record.answer, later, called_before=called_before)
        for one in called(replace(ended, turns=(record,))):
            if not one.ok:
                last = last_success.get(one.tool)
                mended = last is not None and last > (number, one.place)
                yield _of_call(one, by_name.get(one.tool), mended=mended)


def at(turn: int, *, call: int | None = None, path: str = "$", what: str) -> FirstBad:
    """A place with its sentence: people count turns and calls from 1."""
    where = f"Turn {turn + 1}" if call is None else f"Turn {turn + 1}, parsed call {call + 1}"
    return FirstBad(turn, call, path, f"{where}: {what}")


def last_turn(ended: Ended) -> int:
    return ended.turns[-1].turn if ended.turns else 0


def _of_exchange(record: TurnRecord, *, mended: bool) -> Problem:
    assert record.failure is not None
    what = record.failure.message or failure_classes.find(failure_classes.of_exchange(record.failure)).sentence
    return Problem(failure_classes.of_exchange(record.failure), at(record.turn, what=what), record.failure.code, mended)


def _of_answer(
    record: TurnRecord, answer: Turn, later: Sequence[TurnRecord], *, called_before: bool
) -> Iterator[Problem]:
    if answer.finish_reason == CUT and not any(result.envelope.ok for result in record.results):
        what = "the answer was cut at the token limit (finish_reason length)."
        yield Problem("cut_by_length", at(record.turn, path=FINISH, what=what), mended=_any_ok(later))
    if answer.calls:
        return
    known = [(failure_classes.of_finding(finding), finding) for finding in answer.findings]
    for name, finding in known:
        if name:
            kind = "call_in_tags" if name == "text_instead_of_call" and has_call_tag(answer) else name
            what = finding.message[:1].lower() + finding.message[1:]
            yield Problem(kind, at(record.turn, path=finding.path, what=what), mended=_any_ok(later))
    if is_blank(answer.text):
        name, when = ("empty_final", " after the calls") if called_before else ("empty_answer", "")
        what = f"the answer{when} is empty: no visible text and no call."
        yield Problem(name, at(record.turn, path=CONTENT, what=what), mended=_speaks(later))


def _of_call(one: Called, tool: ToolDefinition | None, *, mended: bool) -> Problem:
    codes = error_codes(one.result)
    name, path, what = _call_trouble(one.result, one.tool, tool)
    return Problem(name, at(one.turn, call=one.place, path=path, what=what), codes[0] if codes else "", mended)


def _call_trouble(result: ToolResult, name: str, tool: ToolDefinition | None) -> tuple[str, str, str]:
    """Failure class, JSON path and sentence of a failed call."""
    if result.schema_errors and tool is not None:
        error = result.schema_errors[0]
        return BROKEN_SCHEMA, error.path, messages.of_schema_error(error, result.arguments, tool)
    kind = failure_classes.of_envelope(error_codes(result))
    if kind == "arguments_not_json":
        return kind, "$", f"the arguments of {name} are not a JSON object."
    if kind == "unknown_tool":
        return kind, "$", f"there is no tool called {messages.shown(result.call.name)}."
    message = next((str(error.get("message", "")) for error in result.envelope.errors), "")
    return kind, "$", f"{name} failed: {message.rstrip('.') or 'it gave no reason'}."


def _gave_up(ended: Ended, problem: Problem) -> Problem:
    """The first later turn without a call is where the model gave up; without one, the last turn."""
    later = (record.turn for record in ended.turns if record.turn > problem.bad.turn and not record.results)
    what = f"no call makes good the {problem.code} of turn {problem.bad.turn + 1}."
    return Problem("gave_up_after_error", at(next(later, last_turn(ended)), path=CALLS, what=what), problem.code)


def _last_successes(ended: Ended) -> dict[str, tuple[int, int]]:
    """By tool, where its last good result stands: the turn's number and the call's place in it, from 0."""
    return {
        result.envelope.tool_name: (number, place)
        for number, record in enumerate(ended.turns)
        for place, result in enumerate(record.results)
        if result.envelope.ok
    }


def _any_ok(later: Sequence[TurnRecord]) -> bool:
    return any(result.envelope.ok for record in later for result in record.results)


def _speaks(later: Sequence[TurnRecord]) -> bool:
    return any(record.answer and (record.answer.calls or not is_blank(record.answer.text)) for record in later)
