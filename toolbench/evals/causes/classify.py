"""The causes that a trial's steps show.

Classification is deterministic: fresh and stored steps give the same causes. decisive.py determines which of them the
trial failed of.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Finding, Turn
from toolbench.engine.visible_text import is_blank
from toolbench.evals.causes.required_calls import TaskNeeds
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.causes.table import classify_envelope, load_causes, lookup_code
from toolbench.evals.causes.unread_calls import classify_unknown_tool, classify_written_call, find_call_in_reasoning
from toolbench.evals.record_counts import CALLS_PATH, CONTENT_PATH, CUT_FINISH_REASON, FINISH_REASON_PATH, MESSAGE_PATH

TOOLS_REFUSED = "tools_refused"
_LIST_INDEX = re.compile(r"\[\d+\]")


@light(frozen=True, slots=True)
class CauseOccurrence:
    """A cause at the step where it first occurred.

    Attributes:
        path: The JSON path of the problem.
        turn: The turn, from 0.
        ordinal: The ordinal of the step.
        mended: Whether each occurrence was healed, or a later step recovered from it.
        healed: Whether each occurrence is harmless, or its own turn still went on with a call.
        count: The number of occurrences.
    """

    code: str
    path: str
    turn: int
    ordinal: int
    mended: bool
    healed: bool = False
    count: int = 1


@light(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        outcome: As in Verdict.
        end: The value of engine.EndReason.
        failure_class: That of the verdict.
        call_expected: Whether a call was needed; None if that is not known or no tool was offered.
        needs: The needs of the task.
    """

    outcome: str
    end: str
    failure_class: str = ""
    call_expected: bool | None = None
    needs: TaskNeeds = field(default_factory=TaskNeeds)


def find_occurrences(steps: Sequence[WireStep]) -> tuple[CauseOccurrence, ...]:
    """Return every occurrence, in the order of the steps."""
    outlook = _LaterSteps(steps)
    return tuple(seen for place, step in enumerate(steps) for seen in _classify_step(step, place, outlook))


def group_occurrences(found: Sequence[CauseOccurrence]) -> tuple[CauseOccurrence, ...]:
    """Return one occurrence per code and path (list indices ignored), in the order of the first ones."""
    groups: dict[tuple[str, str], CauseOccurrence] = {}
    for occurrence in found:
        key = (occurrence.code, remove_indices(occurrence.path))
        known = groups.get(key)
        first = known or replace(occurrence, count=0)
        mended, healed = first.mended and occurrence.mended, first.healed and occurrence.healed
        groups[key] = replace(first, count=first.count + occurrence.count, mended=mended, healed=healed)
    return tuple(groups.values())


def remove_indices(path: str) -> str:
    """Return the path with every list index left open: `$.ops[3].path` becomes `$.ops[].path`."""
    return _LIST_INDEX.sub("[]", path)


def build_cause_signature(cause: CauseOccurrence, scenario: str) -> str:
    """Return the key of a failure group: code, scenario, path, turn (from 1)."""
    return f"{cause.code} · {scenario} · {remove_indices(cause.path)[:120]} · turn {cause.turn + 1}"


class _LaterSteps:
    """The last index at which each kind of event happened, -1 for never.

    It answers what follows a step without going through the steps again. `first_call` is the index of the first call
    that ran; without one, the number of steps.
    """

    def __init__(self, steps: Sequence[WireStep]) -> None:
        ran = [(place, step) for place, step in enumerate(steps) if isinstance(step, ToolRun)]
        good = [(place, step) for place, step in ran if step.ok]
        answers = [(place, s.answer) for place, s in enumerate(steps) if isinstance(s, ExchangeAttempt) and s.answer]
        answered = [place for place, answer in answers if answer.calls_found or not is_blank(answer.text)]
        self.first_call = ran[0][0] if ran else len(steps)
        self.answer = answers[-1][0] if answers else -1
        self.word = answered[-1] if answered else -1
        self.success = good[-1][0] if good else -1
        self.success_turn = good[-1][1].turn if good else -1
        self.success_of_tool = {step.tool: place for place, step in good}
        self.ran_in_turn = {step.turn: place for place, step in ran}
        self.unread_in_turn = {step.turn: place for place, step in ran if step.result.parse_status == "invalid_json"}

    def all_read_in_turn(self, turn: int, place: int) -> bool:
        """Return whether calls ran after `place` in the turn and all their arguments were readable."""
        return self.ran_in_turn.get(turn, -1) > place > self.unread_in_turn.get(turn, -1)


def _classify_step(step: WireStep, place: int, outlook: _LaterSteps) -> Iterator[CauseOccurrence]:
    if isinstance(step, ToolRun):
        yield from _classify_call(step, place, outlook)
    elif step.answer is not None:
        yield from _classify_answer(step, step.answer, place, outlook)
    elif code := _classify_error(step):
        # An answer without tools does not recover from refused tools.
        made_good = outlook.success if code == TOOLS_REFUSED else outlook.answer
        yield CauseOccurrence(code, "$", step.turn, step.ordinal, mended=made_good > place)


def _classify_error(step: ExchangeAttempt) -> str:
    if step.error in ("", "cancelled"):
        return ""
    return TOOLS_REFUSED if step.tool_support else lookup_code("exchange", step.error) or "exchange_failed"


def _classify_answer(
    step: ExchangeAttempt, answer: Turn, place: int, outlook: _LaterSteps
) -> Iterator[CauseOccurrence]:
    acts = outlook.success > place
    for code, path in _iter_named_codes(answer):
        healed = bool(answer.calls) or load_causes()[code].harmless
        yield CauseOccurrence(code, path, step.turn, step.ordinal, healed or acts, healed)
    if answer.ignored_calls:
        ignored = CauseOccurrence("calls_ignored", CALLS_PATH, step.turn, step.ordinal, mended=True, healed=True)
        yield replace(ignored, count=answer.ignored_calls)
    if answer.finish_reason == CUT_FINISH_REASON and not outlook.all_read_in_turn(step.turn, place):
        later = outlook.success_turn > step.turn
        yield CauseOccurrence("cut_by_length", FINISH_REASON_PATH, step.turn, step.ordinal, mended=later)
    if not answer.calls_found and is_blank(answer.text):
        code = "empty_final" if outlook.first_call < place else "empty_answer"
        yield CauseOccurrence(code, CONTENT_PATH, step.turn, step.ordinal, mended=outlook.word > place)


def _iter_named_codes(answer: Turn) -> Iterator[tuple[str, str]]:
    """Yield each code that an answer's transforms and findings name, once, with its path."""
    codes_and_paths = dict.fromkeys(
        [
            *((lookup_code("changes", change.name), MESSAGE_PATH) for change in answer.changes),
            *((_classify_finding(finding, answer), finding.path) for finding in answer.findings),
            *_find_raw_shapes(answer),
        ]
    )
    codes: dict[str, str] = {}
    for code, path in codes_and_paths:
        codes.setdefault(code, path)
    yield from ((code, path) for code, path in codes.items() if code)


def _classify_finding(finding: Finding, answer: Turn) -> str:
    if finding.code == "call_in_text":
        return classify_written_call(answer, finding)
    return lookup_code("findings", finding.code)


def _find_raw_shapes(answer: Turn) -> Iterator[tuple[str, str]]:
    """Yield outdated or wrong forms of calls that no transform corrected, so that no call was read."""
    if answer.calls_found:
        return
    if answer.finish_reason == "function_call" or isinstance(answer.message.get("function_call"), dict):
        yield "function_call", f"{MESSAGE_PATH}.function_call"
    if isinstance(answer.message.get("tool_calls"), dict):
        yield "calls_not_a_list", CALLS_PATH
    if path := find_call_in_reasoning(answer):
        yield "call_in_reasoning", path


def _classify_call(step: ToolRun, place: int, outlook: _LaterSteps) -> Iterator[CauseOccurrence]:
    if step.ok:
        return
    mended = outlook.success_of_tool.get(step.tool, -1) > place
    result = step.result
    if result.schema_errors:
        for error in result.schema_errors:
            code = lookup_code("violations", error.kind) or "schema_other"
            yield CauseOccurrence(code, error.path, step.turn, step.ordinal, mended)
        return
    known = classify_envelope(*(str(error.get("code", "")) for error in result.envelope.errors))
    if known == "arguments_not_json":
        known = _classify_arguments(result.call.arguments)
    if known == "tool_unknown":
        known, mended = classify_unknown_tool(result.call.name), outlook.success > place
    yield CauseOccurrence(known, "$", step.turn, step.ordinal, mended)


def _classify_arguments(written: object) -> str:
    """Return the cause for arguments that were not read as a JSON object, as they were received."""
    if isinstance(written, dict):
        return "arguments_as_object"
    blank = written is None or (isinstance(written, str) and not written.strip())
    return "arguments_blank" if blank else "arguments_not_json"
