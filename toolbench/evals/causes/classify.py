"""Which causes a trial's steps show. Deterministic: the same steps give the same answer, whether they are fresh or
stored. Which of them the trial failed of is said in decisive.py."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from toolbench.engine.messages import Finding, Turn
from toolbench.engine.values import light
from toolbench.engine.visible_text import is_blank
from toolbench.evals.causes.required_calls import Needs
from toolbench.evals.causes.step_types import Exchanged, Ran, WireStep
from toolbench.evals.causes.table import all_causes, cause_of_envelope, mapped
from toolbench.evals.causes.unread_calls import call_in_reasoning, cause_of_written_call, unknown_tool
from toolbench.evals.record_counts import CALLS, CONTENT, CUT, FINISH, MESSAGE

TOOLS_REFUSED = "tools_refused"
_PLACE = re.compile(r"\[\d+\]")


@light(frozen=True, slots=True)
class Occurrence:
    """A cause at the step where it was first seen, `count` times in all. `healed`: each time its own turn went on with
    a call all the same, or it is harmless; `mended`: it was healed, or a later step made it good."""

    code: str
    path: str
    turn: int
    ordinal: int
    mended: bool
    healed: bool = False
    count: int = 1


@light(frozen=True, slots=True)
class Ending:
    """How the trial ended: outcome as in Verdict, engine.End, the verdict's failure class. `call_expected` is None
    where no tool was offered; `needs` is what the task needs."""

    outcome: str
    end: str
    failure_class: str = ""
    call_expected: bool | None = None
    needs: Needs = field(default_factory=Needs)


def occurrences(steps: Sequence[WireStep]) -> tuple[Occurrence, ...]:
    """Every one, in order of its step."""
    outlook = _Outlook(steps)
    return tuple(seen for place, step in enumerate(steps) for seen in _of_step(step, place, outlook))


def grouped(found: Sequence[Occurrence]) -> tuple[Occurrence, ...]:
    """One per code and path, places in lists aside, in order of the first."""
    groups: dict[tuple[str, str], Occurrence] = {}
    for one in found:
        key = (one.code, any_place(one.path))
        known = groups.get(key)
        first = known or replace(one, count=0)
        mended, healed = first.mended and one.mended, first.healed and one.healed
        groups[key] = replace(first, count=first.count + one.count, mended=mended, healed=healed)
    return tuple(groups.values())


def any_place(path: str) -> str:
    """The path with every place in a list left open: `$.ops[3].path` becomes `$.ops[].path`."""
    return _PLACE.sub("[]", path)


def cause_signature(cause: Occurrence, scenario: str) -> str:
    """What makes failures one cluster: code, scenario, path, turn (counted from 1)."""
    return f"{cause.code} · {scenario} · {any_place(cause.path)[:120]} · turn {cause.turn + 1}"


class _Outlook:
    """What comes behind a step, told without walking the steps again: the place where each thing happened for the last
    time, -1 for never. `first_call` is where a call ran first, behind all steps where none did."""

    def __init__(self, steps: Sequence[WireStep]) -> None:
        ran = [(place, step) for place, step in enumerate(steps) if isinstance(step, Ran)]
        good = [(place, step) for place, step in ran if step.ok]
        answers = [(place, s.answer) for place, s in enumerate(steps) if isinstance(s, Exchanged) and s.answer]
        said = [place for place, answer in answers if answer.calls_found or not is_blank(answer.text)]
        self.first_call = ran[0][0] if ran else len(steps)
        self.answer = answers[-1][0] if answers else -1
        self.word = said[-1] if said else -1
        self.success = good[-1][0] if good else -1
        self.success_turn = good[-1][1].turn if good else -1
        self.success_of_tool = {step.tool: place for place, step in good}
        self.ran_in_turn = {step.turn: place for place, step in ran}
        self.unread_in_turn = {step.turn: place for place, step in ran if step.result.parse_status == "invalid_json"}

    def all_read_in_turn(self, turn: int, place: int) -> bool:
        """Return whether calls ran behind `place` in the turn, and the arguments of all of them could be read."""
        return self.ran_in_turn.get(turn, -1) > place > self.unread_in_turn.get(turn, -1)


def _of_step(step: WireStep, place: int, outlook: _Outlook) -> Iterator[Occurrence]:
    if isinstance(step, Ran):
        yield from _of_call(step, place, outlook)
    elif step.answer is not None:
        yield from _of_answer(step, step.answer, place, outlook)
    elif code := _of_error(step):
        made_good = outlook.success if code == TOOLS_REFUSED else outlook.answer  # an answer without tools is no call
        yield Occurrence(code, "$", step.turn, step.ordinal, mended=made_good > place)


def _of_error(step: Exchanged) -> str:
    if step.error in ("", "cancelled"):
        return ""
    return TOOLS_REFUSED if step.tool_support else mapped("exchange", step.error) or "exchange_failed"


def _of_answer(step: Exchanged, answer: Turn, place: int, outlook: _Outlook) -> Iterator[Occurrence]:
    acts = outlook.success > place
    for code, path in _named(answer):
        healed = bool(answer.calls) or all_causes()[code].harmless
        yield Occurrence(code, path, step.turn, step.ordinal, healed or acts, healed)
    if answer.ignored_calls:
        ignored = Occurrence("calls_ignored", CALLS, step.turn, step.ordinal, mended=True, healed=True)
        yield replace(ignored, count=answer.ignored_calls)
    if answer.finish_reason == CUT and not outlook.all_read_in_turn(step.turn, place):
        later = outlook.success_turn > step.turn
        yield Occurrence("cut_by_length", FINISH, step.turn, step.ordinal, mended=later)
    if not answer.calls_found and is_blank(answer.text):
        code = "empty_final" if outlook.first_call < place else "empty_answer"
        yield Occurrence(code, CONTENT, step.turn, step.ordinal, mended=outlook.word > place)


def _named(answer: Turn) -> Iterator[tuple[str, str]]:
    """What transforms and findings of an answer say, each code once."""
    said = dict.fromkeys(
        [
            *((mapped("changes", change.name), MESSAGE) for change in answer.changes),
            *((_of_finding(finding, answer), finding.path) for finding in answer.findings),
            *_raw_shapes(answer),
        ]
    )
    codes: dict[str, str] = {}
    for code, path in said:
        codes.setdefault(code, path)
    yield from ((code, path) for code, path in codes.items() if code)


def _of_finding(finding: Finding, answer: Turn) -> str:
    if finding.code == "call_in_text":
        return cause_of_written_call(answer, finding)
    return mapped("findings", finding.code)


def _raw_shapes(answer: Turn) -> Iterator[tuple[str, str]]:
    """Older or wrong shapes that nobody put right, so that no call was read."""
    if answer.calls_found:
        return
    if answer.finish_reason == "function_call" or isinstance(answer.message.get("function_call"), dict):
        yield "function_call", f"{MESSAGE}.function_call"
    if isinstance(answer.message.get("tool_calls"), dict):
        yield "calls_not_a_list", CALLS
    if path := call_in_reasoning(answer):
        yield "call_in_reasoning", path


def _of_call(step: Ran, place: int, outlook: _Outlook) -> Iterator[Occurrence]:
    if step.ok:
        return
    mended = outlook.success_of_tool.get(step.tool, -1) > place
    result = step.result
    if result.schema_errors:
        for error in result.schema_errors:
            code = mapped("violations", error.kind) or "schema_other"
            yield Occurrence(code, error.path, step.turn, step.ordinal, mended)
        return
    known = cause_of_envelope(*(str(error.get("code", "")) for error in result.envelope.errors))
    if known == "arguments_not_json":
        known = _of_arguments(result.call.arguments)
    if known == "tool_unknown":
        known, mended = unknown_tool(result.call.name), outlook.success > place
    yield Occurrence(known, "$", step.turn, step.ordinal, mended)


def _of_arguments(written: object) -> str:
    """Return the cause for arguments that were not read as a JSON object, as they came."""
    if isinstance(written, dict):
        return "arguments_as_object"
    blank = written is None or (isinstance(written, str) and not written.strip())
    return "arguments_blank" if blank else "arguments_not_json"
