"""The cause of a failed trial: the decisive departure, the last one on which the verdict rests.

A departure is a problem in a step that no later step recovered from. The verdict rests on one if, without it, the task
could still have been done. The rule, in this order:

1. *Named by its class.* Some failure classes are a cause by themselves: a trial that could not be started, an error of
Toolbench, tools that the server's template dropped, a final text that stayed blank. 2. *Broken off.* If the trial
deadline passed, that is the cause. If the provider ended the trial, the exchange that did is. 3. *A needless call.* If
the task wants no call and one was made, that call is the cause, with or without other problems. 4. *A departure without
recovery.* The turn of the last one counts, and in that turn the first: an answer that was truncated explains the
arguments that cannot be read. Problems of answers count (a call in text, a truncation, a call that cannot be read; a
blank answer only if a call or a text was still needed), and so do failed calls of a tool that the task needs or of a
tool that does not exist. A failed call of any other tool counts only if a call was still needed and the model stopped
there. An error that the task provokes (arguments over a limit, a fault of the simulated tool) is no departure as often
as the task provokes it; one more is a departure. 5. *The ending.* Without such a departure, or if the turns ran out
after other work: the turns were used up; the last answer is words although a call was needed (`no_call`); the calls
were never in one message; or everything ran and the result is not the one asked for (`task_not_done`).

So prose in place of a call is `no_call`, whether nothing, a good call or a provoked error came before it. Arguments
that were rejected and never corrected are the cause also if the model ends in words afterwards.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from toolbench.engine.events import EndReason
from toolbench.evals.causes.classify import CauseOccurrence, TrialEnd
from toolbench.evals.causes.required_calls import lacks_call
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.causes.table import lookup_code
from toolbench.evals.record_counts import CALLS_PATH

FAILED_OUTCOMES = ("fail", "infra")
BLANK_ANSWER_CODES = ("empty_answer", "empty_final")
CUT_ANSWER_CODE = "cut_by_length"
UNKNOWN_TOOL_CODES = ("tool_unknown", "calls_wrapped", "name_unclean")
MISSING_CALL_CLASSES = ("no_tool_calls", "never_patched", "missing_call")  # failure classes


def find_cause(steps: Sequence[WireStep], found: Sequence[CauseOccurrence], ending: TrialEnd) -> CauseOccurrence | None:
    """Return the cause of a failed trial or of its infrastructure error; None for any other trial."""
    if ending.outcome not in FAILED_OUTCOMES:
        return None
    if code := lookup_code("classes", ending.failure_class):
        return _find_named_cause(code, steps, found)
    if not steps:
        return CauseOccurrence("never_sent", "$", 0, 0, mended=False)
    if ending.end == EndReason.DEADLINE_EXCEEDED:
        return _build_occurrence("deadline_passed", steps[-1])
    ended_by = _find_ending_exchange(steps, found) if ending.end == EndReason.PROVIDER_ERROR else None
    return (
        ended_by
        or _find_needless_call(steps, ending)
        or _find_departure(steps, found, ending)
        or _classify_end(steps, ending)
    )


def iter_departures(
    steps: Sequence[WireStep], found: Sequence[CauseOccurrence], ending: TrialEnd
) -> Iterator[CauseOccurrence]:
    """Yield the problems without recovery on which the verdict may rest, in order."""
    by_ordinal = {step.ordinal: step for step in steps}
    lacking = _lacks_call(steps, ending)
    stopped = _find_last_calling_turn(steps)
    for occurrence in _skip_provoked(found, ending.needs.provoked):
        step = by_ordinal[occurrence.ordinal]
        if occurrence.mended:
            continue
        if isinstance(step, ExchangeAttempt):
            counts = (
                not _is_missing_text(occurrence, step) or lacking or ending.needs.reply or ending.needs.tools is None
            )
        else:
            counts = _is_relevant_call(step, occurrence, ending, lacking) or (lacking and occurrence.turn == stopped)
        if counts:
            yield occurrence


def _is_missing_text(occurrence: CauseOccurrence, step: ExchangeAttempt) -> bool:
    """Return whether the problem is missing text: a blank answer, or a truncated one without a call."""
    cut_words = occurrence.code == CUT_ANSWER_CODE and step.answer is not None and not step.answer.calls_found
    return occurrence.code in BLANK_ANSWER_CODES or cut_words


def _find_named_cause(code: str, steps: Sequence[WireStep], found: Sequence[CauseOccurrence]) -> CauseOccurrence:
    """Return the cause that a failure class names, at its last occurrence; without one, at the first step."""
    seen = [occurrence for occurrence in found if occurrence.code == code]
    return seen[-1] if seen else CauseOccurrence(code, "$", 0, steps[0].ordinal if steps else 0, mended=False)


def _find_ending_exchange(steps: Sequence[WireStep], found: Sequence[CauseOccurrence]) -> CauseOccurrence | None:
    failed = {step.ordinal for step in steps if isinstance(step, ExchangeAttempt) and step.error}
    ended_by = [occurrence for occurrence in found if occurrence.ordinal in failed]
    return ended_by[-1] if ended_by else None


def _find_needless_call(steps: Sequence[WireStep], ending: TrialEnd) -> CauseOccurrence | None:
    if ending.call_expected is not False:
        return None
    calling = [step for step in steps if _count_calls(step)]
    return _build_occurrence("needless_call", calling[-1], CALLS_PATH) if calling else None


def _find_departure(
    steps: Sequence[WireStep], found: Sequence[CauseOccurrence], ending: TrialEnd
) -> CauseOccurrence | None:
    """Return the first departure of the last turn that has one."""
    departed = tuple(iter_departures(steps, found, ending))
    if not departed:
        return None
    turn = departed[-1].turn
    if _has_used_all_turns(steps, ending) and turn < steps[-1].turn:
        return None
    return next(occurrence for occurrence in departed if occurrence.turn == turn)


def _classify_end(steps: Sequence[WireStep], ending: TrialEnd) -> CauseOccurrence:
    last = steps[-1]
    if _has_used_all_turns(steps, ending):
        return _build_occurrence("turns_used_up", last)
    if _lacks_call(steps, ending) and not _count_calls(_find_last_answer(steps)):
        return _build_occurrence("no_call", last)
    if ending.needs.together > max(1, _count_parallel_calls(steps)):
        return _build_occurrence("calls_apart", last)
    return _build_occurrence("task_not_done", last)


def _is_relevant_call(step: ToolRun, occurrence: CauseOccurrence, ending: TrialEnd, lacking: bool) -> bool:
    """Return whether a failed call is one that the task needs, or may have been meant as one."""
    needed = ending.needs.tools
    if needed is None or ending.end == EndReason.TOOL_ERROR:
        return True
    return step.tool in needed or (lacking and occurrence.code in UNKNOWN_TOOL_CODES)


def _skip_provoked(found: Sequence[CauseOccurrence], provoked: Sequence[str]) -> Iterator[CauseOccurrence]:
    """Yield all occurrences but those that the task provokes.

    For each code those are its first steps, as often as the task names the code.
    """
    left = Counter(provoked)
    forgiven: set[tuple[str, int]] = set()
    for occurrence in found:
        place = (occurrence.code, occurrence.ordinal)
        if place not in forgiven and left[occurrence.code]:
            left[occurrence.code] -= 1
            forgiven.add(place)
        if place not in forgiven:
            yield occurrence


def _lacks_call(steps: Sequence[WireStep], ending: TrialEnd) -> bool:
    """Return whether a call was still needed at the end; if the task does not name it, whether none succeeded."""
    lacking = lacks_call(steps, ending.needs)
    if lacking is not None:
        return lacking
    none_good = not any(isinstance(step, ToolRun) and step.ok for step in steps)
    return bool(ending.call_expected) and (none_good or ending.failure_class in MISSING_CALL_CLASSES)


def _has_used_all_turns(steps: Sequence[WireStep], ending: TrialEnd) -> bool:
    """Return whether the turns ran out; a task of one turn always ends after it and does not count."""
    return ending.end == EndReason.MAX_TURNS_EXCEEDED and steps[-1].turn > 0


def _find_last_calling_turn(steps: Sequence[WireStep]) -> int:
    return max((step.turn for step in steps if isinstance(step, ToolRun)), default=-1)


def _find_last_answer(steps: Sequence[WireStep]) -> WireStep | None:
    return next((step for step in reversed(steps) if isinstance(step, ExchangeAttempt) and step.answer), None)


def _count_parallel_calls(steps: Sequence[WireStep]) -> int:
    return max((_count_calls(step) for step in steps), default=0)


def _count_calls(step: WireStep | None) -> int:
    return len(step.answer.calls_found) if isinstance(step, ExchangeAttempt) and step.answer else 0


def _build_occurrence(code: str, step: WireStep, path: str = "$") -> CauseOccurrence:
    return CauseOccurrence(code, path, step.turn, step.ordinal, mended=False)
