"""Selection of the one cause of a failed trial.

The first of these rules that applies gives the cause:

1. Failure class: some classes are a cause by themselves, for instance a trial that could not be started, or tools that
   the server's template dropped.
2. Broken off: without any step the cause is `never_sent`. If the trial deadline passed, the cause is
   `deadline_passed`. If the provider ended the trial, the cause is the last one found at a failed exchange, if any.
3. Needless call: if the task needs no call and one was made, the call is the cause.
4. Unrecovered problem: the cause is the first candidate of the last turn that has one. For instance, a truncated answer
   explains arguments that cannot be read. Candidates are problems from which no later step recovered and which are not
   harmless (`healed`), if they are
   - a problem of a failed exchange or of an answer, other than those of the next two items;
   - a blank answer, or a truncated one without a call, if a call was still needed, the needed tools are not known, or
     the task needs a final text;
   - a call in the text or the reasoning, readable or not, if a call was still needed or the needed tools are not known,
     since a text may also quote a call;
   - a failed call of a tool that the task needs, or, if a call was still needed, of a tool that does not exist;
   - any failed call, if the needed tools are not known or the run ended with TOOL_ERROR;
   - a failed call of any other tool if a call was still needed and the model made no call in a later turn.
   If the task provokes a code n times, the first n steps with that code do not count.
5. End: if there is no candidate, or the turns ran out in a later turn than that of the candidate, the cause is the
   first of these that is true: the turns ran out (`turns_used_up`); a needed call is missing and the last answer has no
   call (`no_call`); the calls were not in one message (`calls_apart`); the result is wrong (`task_not_done`).
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
TRUNCATED_ANSWER_CODE = "cut_by_length"
WRITTEN_CALL_CODES = ("call_in_tags", "call_in_text", "call_in_reasoning", "call_unreadable")
UNKNOWN_TOOL_CODES = ("tool_unknown", "calls_wrapped", "name_unclean")  # of calls of a tool that does not exist
MISSING_CALL_CLASSES = ("no_tool_calls", "never_patched", "missing_call")  # failure classes


def find_cause(
    steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence], ending: TrialEnd
) -> CauseOccurrence | None:
    """Return the cause of a failed trial or of an infrastructure error; None for any other trial.

    Args:
        steps: The steps of the last execution, in order.
        occurrences: The result of `find_occurrences` for these steps.
        ending: The end of the trial.
    """
    if ending.outcome not in FAILED_OUTCOMES:
        return None
    if code := lookup_code("classes", ending.failure_class):
        return _find_named_cause(code, steps, occurrences)
    if not steps:
        return CauseOccurrence("never_sent", "$", 0, 0, mended=False)
    if ending.end == EndReason.DEADLINE_EXCEEDED:
        return _build_occurrence("deadline_passed", steps[-1])
    is_ended_by_provider = ending.end == EndReason.PROVIDER_ERROR
    return (
        (_find_failed_exchange_cause(steps, occurrences) if is_ended_by_provider else None)
        or _find_needless_call(steps, ending)
        or _find_unrecovered_problem(steps, occurrences, ending)
        or _classify_end(steps, ending)
    )


def iter_candidates(
    steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence], ending: TrialEnd
) -> Iterator[CauseOccurrence]:
    """Yield the candidate causes of rule 4, in the order of the steps."""
    by_ordinal = {step.ordinal: step for step in steps}
    needs = ending.needs
    is_call_missing = _is_call_missing(steps, ending)
    last_calling_turn = _find_last_calling_turn(steps)
    for occurrence in _skip_provoked(occurrences, needs.provoked_causes):
        step = by_ordinal[occurrence.ordinal]
        if occurrence.mended:
            continue
        if isinstance(step, ExchangeAttempt):
            is_call_needed = is_call_missing or needs.tools is None
            is_needed = is_call_needed or (needs.needs_reply and occurrence.code not in WRITTEN_CALL_CODES)
            is_candidate = is_needed or not _is_missing_output(occurrence, step)
        else:
            is_in_last_calling_turn = is_call_missing and occurrence.turn == last_calling_turn
            is_candidate = is_in_last_calling_turn or _is_relevant_call(step, occurrence, ending, is_call_missing)
        if is_candidate:
            yield occurrence


def _is_missing_output(occurrence: CauseOccurrence, step: ExchangeAttempt) -> bool:
    """Return whether the problem is a missing text or call.

    Such problems are a blank answer, a truncated one without a call, and a call in the text or the reasoning, readable
    or not.
    """
    if occurrence.code == TRUNCATED_ANSWER_CODE:
        return step.answer is not None and not step.answer.calls_found
    return occurrence.code in (*BLANK_ANSWER_CODES, *WRITTEN_CALL_CODES)


def _find_named_cause(code: str, steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence]) -> CauseOccurrence:
    """Return the last occurrence of the cause that a failure class names.

    If it did not occur, return one at the first step.
    """
    named_occurrences = [occurrence for occurrence in occurrences if occurrence.code == code]
    if named_occurrences:
        return named_occurrences[-1]
    return CauseOccurrence(code, "$", 0, steps[0].ordinal if steps else 0, mended=False)


def _find_failed_exchange_cause(
    steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence]
) -> CauseOccurrence | None:
    """Return the last cause found at a failed exchange; None if there is none."""
    failed_ordinals = {step.ordinal for step in steps if isinstance(step, ExchangeAttempt) and step.error}
    return next((occurrence for occurrence in reversed(occurrences) if occurrence.ordinal in failed_ordinals), None)


def _find_needless_call(steps: Sequence[WireStep], ending: TrialEnd) -> CauseOccurrence | None:
    if ending.call_expected is not False:
        return None
    calling_steps = [step for step in steps if _count_calls(step)]
    return _build_occurrence("needless_call", calling_steps[-1], CALLS_PATH) if calling_steps else None


def _find_unrecovered_problem(
    steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence], ending: TrialEnd
) -> CauseOccurrence | None:
    """Return the first candidate of the last turn that has one.

    Returns:
        None if there is no candidate, or if the turns ran out in a later turn.
    """
    candidates = tuple(iter_candidates(steps, occurrences, ending))
    if not candidates:
        return None
    turn = candidates[-1].turn
    if _has_used_all_turns(steps, ending) and turn < steps[-1].turn:
        return None
    return next(occurrence for occurrence in candidates if occurrence.turn == turn)


def _classify_end(steps: Sequence[WireStep], ending: TrialEnd) -> CauseOccurrence:
    last = steps[-1]
    if _has_used_all_turns(steps, ending):
        return _build_occurrence("turns_used_up", last)
    if _is_call_missing(steps, ending) and not _count_calls(_find_last_answer(steps)):
        return _build_occurrence("no_call", last)
    if ending.needs.parallel_calls > max(1, _count_parallel_calls(steps)):
        return _build_occurrence("calls_apart", last)
    return _build_occurrence("task_not_done", last)


def _is_relevant_call(step: ToolRun, occurrence: CauseOccurrence, ending: TrialEnd, is_call_missing: bool) -> bool:
    """Return whether a failed call is a candidate cause, wherever it stands in the run.

    It is a candidate if its tool is needed, or is unknown while a call is missing. Every failed call is a candidate if
    the needed tools are not known, or if a failed call ended the run.
    """
    needed_tools = ending.needs.tools
    if needed_tools is None or ending.end == EndReason.TOOL_ERROR:
        return True
    return step.tool in needed_tools or (is_call_missing and occurrence.code in UNKNOWN_TOOL_CODES)


def _skip_provoked(occurrences: Sequence[CauseOccurrence], provoked_causes: Sequence[str]) -> Iterator[CauseOccurrence]:
    """Yield all occurrences except those that the task provokes.

    A code that the task provokes n times is skipped at the first n steps where it occurs.
    """
    remaining = Counter(provoked_causes)
    skipped: set[tuple[str, int]] = set()  # codes with the ordinals of their steps
    for occurrence in occurrences:
        key = (occurrence.code, occurrence.ordinal)
        if key not in skipped and remaining[occurrence.code]:
            remaining[occurrence.code] -= 1
            skipped.add(key)
        if key not in skipped:
            yield occurrence


def _is_call_missing(steps: Sequence[WireStep], ending: TrialEnd) -> bool:
    """Return whether a needed call was never made with success.

    If the needed tools are not known, a call is missing if one was expected, and either none succeeded or the failure
    class is one of MISSING_CALL_CLASSES.
    """
    is_call_missing = lacks_call(steps, ending.needs)
    if is_call_missing is not None:
        return is_call_missing
    has_success = any(isinstance(step, ToolRun) and step.ok for step in steps)
    return bool(ending.call_expected) and (not has_success or ending.failure_class in MISSING_CALL_CLASSES)


def _has_used_all_turns(steps: Sequence[WireStep], ending: TrialEnd) -> bool:
    """Return whether the turns ran out.

    The result is False if the last step is in the first turn, because every call reaches the limit if it is one turn.
    """
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
