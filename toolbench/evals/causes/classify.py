"""Classification of a trial's steps: every cause of a problem that they show.

The steps of a finished run give the same causes as the stored steps. decisive.py determines which cause made the trial
fail.
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
from toolbench.evals.record_counts import (
    CALLS_PATH,
    CONTENT_PATH,
    FINISH_REASON_PATH,
    MESSAGE_PATH,
    TRUNCATED_FINISH_REASON,
)

TOOLS_REFUSED = "tools_refused"
_LIST_INDEX = re.compile(r"\[\d+\]")


@light(frozen=True, slots=True)
class CauseOccurrence:
    """An occurrence of a cause at a step, or a group of occurrences with the step of the first one.

    The names of the fields are the keys under which a group is stored.

    Attributes:
        code: The code of the cause in the table of causes.
        path: The JSON path of the problem.
        turn: The turn, from 0.
        ordinal: The ordinal of the step; 0 if the trial has no steps.
        mended: Whether each occurrence is healed, or a later step recovered from it.
        healed: Whether each occurrence is harmless, or calls were read from its answer nevertheless.
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
    """The end of a trial and the requirements of its task.

    Attributes:
        outcome: pass, fail, infra, na or cancelled.
        end: The value of the EndReason of the trial.
        failure_class: A code of evals/data/failure_classes.json; "" for a pass.
        call_expected: Whether a call was needed; None if that is not known or no tool was offered.
        needs: The requirements of the task.
    """

    outcome: str
    end: str
    failure_class: str = ""
    call_expected: bool | None = None
    needs: TaskNeeds = field(default_factory=TaskNeeds)


def find_occurrences(steps: Sequence[WireStep]) -> tuple[CauseOccurrence, ...]:
    """Return every occurrence of a cause, in the order of the steps.

    Args:
        steps: The steps of one execution, in order.
    """
    later = _LaterSteps(steps)
    return tuple(occurrence for index, step in enumerate(steps) for occurrence in _classify_step(step, index, later))


def group_occurrences(occurrences: Sequence[CauseOccurrence]) -> tuple[CauseOccurrence, ...]:
    """Return one occurrence for each code and path, in the order of the first ones.

    Two paths are the same if they differ only in list indices.
    """
    groups: dict[tuple[str, str], CauseOccurrence] = {}
    for occurrence in occurrences:
        key = (occurrence.code, remove_indices(occurrence.path))
        first = groups.get(key) or replace(occurrence, count=0)
        mended, healed = first.mended and occurrence.mended, first.healed and occurrence.healed
        groups[key] = replace(first, count=first.count + occurrence.count, mended=mended, healed=healed)
    return tuple(groups.values())


def remove_indices(path: str) -> str:
    """Return the path without its list indices: `$.ops[3].path` becomes `$.ops[].path`."""
    return _LIST_INDEX.sub("[]", path)


def build_cause_signature(cause: CauseOccurrence, scenario: str) -> str:
    """Return the key of a failure group: code, scenario, path without list indices (truncated), turn (from 1)."""
    return f"{cause.code} · {scenario} · {remove_indices(cause.path)[:120]} · turn {cause.turn + 1}"


class _LaterSteps:
    """The positions of calls and answers in an execution, which show whether one of them follows a step.

    A call is a ToolRun. An index counts the steps, from 0; -1 stands for none.

    Attributes:
        first_call: The index of the first call; the number of steps if there is none.
        last_answer: The index of the last answer.
        last_content: The index of the last answer with a call or visible text.
        last_success: The index of the last successful call.
        last_success_turn: The turn of that call; -1 for none.
        last_success_by_tool: The index of the last successful call of each tool.
        last_call_by_turn: The index of the last call of each turn.
        last_unreadable_by_turn: For each turn, the index of the last call whose arguments are not JSON.
    """

    def __init__(self, steps: Sequence[WireStep]) -> None:
        calls = [(index, step) for index, step in enumerate(steps) if isinstance(step, ToolRun)]
        successes = [(index, step) for index, step in calls if step.ok]
        answers = [
            (index, step.answer)
            for index, step in enumerate(steps)
            if isinstance(step, ExchangeAttempt) and step.answer
        ]
        content_indices = [index for index, answer in answers if answer.calls_found or not is_blank(answer.text)]
        self.first_call = calls[0][0] if calls else len(steps)
        self.last_answer = answers[-1][0] if answers else -1
        self.last_content = content_indices[-1] if content_indices else -1
        self.last_success = successes[-1][0] if successes else -1
        self.last_success_turn = successes[-1][1].turn if successes else -1
        self.last_success_by_tool = {step.tool: index for index, step in successes}
        self.last_call_by_turn = {step.turn: index for index, step in calls}
        self.last_unreadable_by_turn = {
            step.turn: index for index, step in calls if step.result.parse_status == "invalid_json"
        }

    def are_all_readable(self, turn: int, index: int) -> bool:
        """Return whether calls followed the step at `index` in the turn, all with readable arguments."""
        return self.last_call_by_turn.get(turn, -1) > index > self.last_unreadable_by_turn.get(turn, -1)


def _classify_step(step: WireStep, index: int, later: _LaterSteps) -> Iterator[CauseOccurrence]:
    if isinstance(step, ToolRun):
        yield from _classify_call(step, index, later)
    elif step.answer is not None:
        yield from _classify_answer(step, step.answer, index, later)
    elif code := _classify_error(step):
        # An answer to a request without tools does not recover from refused tools.
        recovered_at = later.last_success if code == TOOLS_REFUSED else later.last_answer
        yield CauseOccurrence(code, "$", step.turn, step.ordinal, mended=recovered_at > index)


def _classify_error(step: ExchangeAttempt) -> str:
    if step.error in ("", "cancelled"):
        return ""
    return TOOLS_REFUSED if step.is_tools_error else lookup_code("exchange", step.error) or "exchange_failed"


def _classify_answer(step: ExchangeAttempt, answer: Turn, index: int, later: _LaterSteps) -> Iterator[CauseOccurrence]:
    succeeds_later = later.last_success > index
    for code, path in _iter_named_codes(answer):
        healed = bool(answer.calls) or load_causes()[code].harmless
        yield CauseOccurrence(code, path, step.turn, step.ordinal, healed or succeeds_later, healed)
    if answer.ignored_call_count:
        ignored = CauseOccurrence("calls_ignored", CALLS_PATH, step.turn, step.ordinal, mended=True, healed=True)
        yield replace(ignored, count=answer.ignored_call_count)
    if answer.finish_reason == TRUNCATED_FINISH_REASON and not later.are_all_readable(step.turn, index):
        recovered = later.last_success_turn > step.turn
        yield CauseOccurrence("cut_by_length", FINISH_REASON_PATH, step.turn, step.ordinal, mended=recovered)
    if not answer.calls_found and is_blank(answer.text):
        code = "empty_final" if later.first_call < index else "empty_answer"
        yield CauseOccurrence(code, CONTENT_PATH, step.turn, step.ordinal, mended=later.last_content > index)


def _iter_named_codes(answer: Turn) -> Iterator[tuple[str, str]]:
    """Yield the code of each cause that an answer's changes, findings and message show, once, with its first path."""
    codes_and_paths = dict.fromkeys(
        [
            *((lookup_code("changes", change.name), MESSAGE_PATH) for change in answer.changes),
            *((_classify_finding(finding, answer), finding.path) for finding in answer.findings),
            *_iter_wrong_forms(answer),
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


def _iter_wrong_forms(answer: Turn) -> Iterator[tuple[str, str]]:
    """Yield code and path of each outdated or wrong form of calls, if no call was read from the answer."""
    if answer.calls_found:
        return
    if answer.finish_reason == "function_call" or isinstance(answer.message.get("function_call"), dict):
        yield "function_call", f"{MESSAGE_PATH}.function_call"
    if isinstance(answer.message.get("tool_calls"), dict):
        yield "calls_not_a_list", CALLS_PATH
    if path := find_call_in_reasoning(answer):
        yield "call_in_reasoning", path


def _classify_call(step: ToolRun, index: int, later: _LaterSteps) -> Iterator[CauseOccurrence]:
    if step.ok:
        return
    recovered = later.last_success_by_tool.get(step.tool, -1) > index
    result = step.result
    if result.schema_errors:
        for error in result.schema_errors:
            code = lookup_code("violations", error.kind) or "schema_other"
            yield CauseOccurrence(code, error.path, step.turn, step.ordinal, recovered)
        return
    code = classify_envelope(*(str(error.get("code", "")) for error in result.envelope.errors))
    if code == "arguments_not_json":
        code = _classify_arguments(result.call.arguments)
    if code == "tool_unknown":
        code, recovered = classify_unknown_tool(result.call.name), later.last_success > index
    yield CauseOccurrence(code, "$", step.turn, step.ordinal, recovered)


def _classify_arguments(received: object) -> str:
    """Return the cause code for arguments that could not be read, from their form as received."""
    if isinstance(received, dict):
        return "arguments_as_object"
    is_missing = received is None or (isinstance(received, str) and not received.strip())
    return "arguments_blank" if is_missing else "arguments_not_json"
