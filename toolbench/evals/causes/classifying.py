"""Which causes a trial's steps show, and which of them it failed of. Deterministic: the same steps give the same
answer, whether they are fresh or stored."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolbench.engine.events import End
from toolbench.engine.messages import Turn
from toolbench.engine.values import light
from toolbench.evals.causes.wire_causes import all_causes, mapped
from toolbench.evals.causes.wire_steps import Exchanged, Ran, WireStep
from toolbench.evals.evidence import CALLS, CONTENT, CUT, FINISH, MESSAGE, has_call_tag

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
    where no tool was offered."""

    outcome: str
    end: str
    failure_class: str = ""
    call_expected: bool | None = None


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


def cause_of(steps: Sequence[WireStep], found: Sequence[Occurrence], ending: Ending) -> Occurrence | None:
    """What a trial that failed, or that the infrastructure ended, failed of; None for any other."""
    if ending.outcome not in ("fail", "infra"):
        return None
    last = steps[-1] if steps else None
    turn, ordinal = (last.turn, last.ordinal) if last else (0, 0)
    if named := mapped("classes", ending.failure_class):
        return Occurrence(named, "$", 0, steps[0].ordinal if steps else 0, mended=False)
    if last is None:
        return Occurrence("never_sent", "$", 0, 0, mended=False)
    if ending.end == End.DEADLINE_EXCEEDED:
        return Occurrence("deadline_passed", "$", turn, ordinal, mended=False)
    failed = {step.ordinal for step in steps if isinstance(step, Exchanged) and step.error}
    ended_by = [one for one in found if one.ordinal in failed] if ending.end == End.PROVIDER_ERROR else []
    unmended = next((one for one in found if not one.mended), None)
    if ended_by or unmended:
        return ended_by[-1] if ended_by else unmended
    return Occurrence(_of_ending(steps, ending), "$", turn, ordinal, mended=False)


def any_place(path: str) -> str:
    """The path with every place in a list left open: `$.ops[3].path` becomes `$.ops[].path`."""
    return _PLACE.sub("[]", path)


def cause_signature(cause: Occurrence, scenario: str) -> str:
    """What makes failures one cluster: code, scenario, path, turn (counted from 1)."""
    return f"{cause.code} · {scenario} · {any_place(cause.path)[:120]} · turn {cause.turn + 1}"


def _of_ending(steps: Sequence[WireStep], ending: Ending) -> str:
    called = any(step.answer.calls_found for step in steps if isinstance(step, Exchanged) and step.answer)
    if ending.end == End.MAX_TURNS_EXCEEDED and ending.call_expected and called and _many_turns(steps):
        return "turns_used_up"
    if ending.call_expected is False and called:
        return "needless_call"
    return "no_call" if ending.call_expected and not called else "task_not_done"


def _many_turns(steps: Sequence[WireStep]) -> bool:
    """A task of one turn ends after it, whatever came of it."""
    return steps[-1].turn > 0


class _Outlook:
    """What comes behind a step, told without walking the steps again: the place where each thing happened for the last
    time, -1 for never. `first_call` is where a call ran first, behind all steps where none did."""

    def __init__(self, steps: Sequence[WireStep]) -> None:
        ran = [(place, step) for place, step in enumerate(steps) if isinstance(step, Ran)]
        good = [(place, step) for place, step in ran if step.ok]
        answers = [(place, s.answer) for place, s in enumerate(steps) if isinstance(s, Exchanged) and s.answer]
        said = [place for place, answer in answers if answer.calls_found or answer.text.strip()]
        self.first_call = ran[0][0] if ran else len(steps)
        self.answer = answers[-1][0] if answers else -1
        self.word = said[-1] if said else -1
        self.success = good[-1][0] if good else -1
        self.success_of_tool = {step.tool: place for place, step in good}
        self.success_in_turn = {step.turn: place for place, step in good}


def _of_step(step: WireStep, place: int, outlook: _Outlook) -> Iterator[Occurrence]:
    if isinstance(step, Ran):
        yield from _of_call(step, place, outlook)
    elif step.answer is not None:
        yield from _of_answer(step, step.answer, place, outlook)
    elif code := _of_error(step):
        yield Occurrence(code, "$", step.turn, step.ordinal, mended=outlook.answer > place)


def _of_error(step: Exchanged) -> str:
    if step.error in ("", "cancelled"):
        return ""
    return "tools_refused" if step.tool_support else mapped("exchange", step.error) or "exchange_failed"


def _of_answer(step: Exchanged, answer: Turn, place: int, outlook: _Outlook) -> Iterator[Occurrence]:
    acts = outlook.success > place
    for code, path in _named(answer):
        healed = bool(answer.calls) or all_causes()[code].harmless
        yield Occurrence(code, path, step.turn, step.ordinal, healed or acts, healed)
    if answer.ignored_calls:
        ignored = Occurrence("calls_ignored", CALLS, step.turn, step.ordinal, mended=True, healed=True)
        yield replace(ignored, count=answer.ignored_calls)
    if answer.finish_reason == CUT and outlook.success_in_turn.get(step.turn, -1) < place:
        yield Occurrence("cut_by_length", FINISH, step.turn, step.ordinal, acts)
    if not answer.calls_found and not answer.text.strip():
        code = "empty_final" if outlook.first_call < place else "empty_answer"
        yield Occurrence(code, CONTENT, step.turn, step.ordinal, mended=outlook.word > place)


def _named(answer: Turn) -> Iterator[tuple[str, str]]:
    """What transforms and findings of an answer say, each code once."""
    said = dict.fromkeys(
        [
            *((mapped("changes", change.name), MESSAGE) for change in answer.changes),
            *((_of_finding(finding.code, answer), finding.path) for finding in answer.findings),
            *_raw_shapes(answer),
        ]
    )
    codes: dict[str, str] = {}
    for code, path in said:
        codes.setdefault(code, path)
    yield from ((code, path) for code, path in codes.items() if code)


def _of_finding(code: str, answer: Turn) -> str:
    if code == "call_in_text" and has_call_tag(answer):
        return "call_in_tags"
    return mapped("findings", code)


def _raw_shapes(answer: Turn) -> Iterator[tuple[str, str]]:
    """Older or wrong shapes that nobody put right, so that no call was read."""
    if answer.calls_found:
        return
    if isinstance(answer.message.get("function_call"), dict):
        yield "function_call", f"{MESSAGE}.function_call"
    if isinstance(answer.message.get("tool_calls"), dict):
        yield "calls_not_a_list", CALLS


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
    codes = [str(error.get("code", "")) for error in result.envelope.errors]
    known = next((code for name in codes if (code := mapped("envelope", name))), "tool_failed")
    if known == "arguments_not_json" and isinstance(result.call.arguments, dict | list):
        known = "arguments_as_object"
    elif known == "arguments_not_json" and not str(result.call.arguments or "").strip():
        known = "arguments_blank"
    if known == "tool_unknown":
        mended = outlook.success > place
    yield Occurrence(known, "$", step.turn, step.ordinal, mended)
