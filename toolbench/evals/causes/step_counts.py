"""Counts of one trial's steps beside those of record_counts.py; stored steps give the same counts."""

from collections.abc import Sequence

from toolbench.evals.causes.classify import CauseOccurrence
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep

VIOLATION_KINDS = ("missing", "type", "enum", "range", "extra")


def count_steps(steps: Sequence[WireStep], found: Sequence[CauseOccurrence]) -> dict[str, int]:
    """Return the counts by name.

    `<kind>_calls` are calls with a schema violation of that kind. A good turn has an answer and no problem but healed
    ones. A final answer has no call in it; an empty final answer is blank after a tool's result.
    """
    calls = [step for step in steps if isinstance(step, ToolRun)]
    answers = [step for step in steps if isinstance(step, ExchangeAttempt) and step.answer is not None]
    answered = {step.turn for step in answers}
    bad = {occurrence.turn for occurrence in found if not occurrence.healed}
    kinds = [{error.kind for error in step.result.schema_errors} for step in calls]
    return {
        "failed_calls": sum(not step.ok for step in calls),
        **{f"{kind}_calls": sum(kind in broken for broken in kinds) for kind in VIOLATION_KINDS},
        "answered_turns": len(answered),
        "good_turns": len(answered - bad),
        "final_answers": sum(not step.answer.calls_found for step in answers if step.answer is not None),
        "empty_finals": sum(occurrence.code == "empty_final" for occurrence in found),
    }
