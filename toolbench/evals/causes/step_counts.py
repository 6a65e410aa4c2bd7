"""Counts of one trial's steps, in addition to those of record_counts.py.

Fresh and stored steps of a trial give the same counts.
"""

from collections.abc import Sequence

from toolbench.evals.causes.classify import CauseOccurrence
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep

VIOLATION_KINDS = ("missing", "type", "enum", "range", "extra")


def count_steps(steps: Sequence[WireStep], occurrences: Sequence[CauseOccurrence]) -> dict[str, int]:
    """Return the counts by the trial's column.

    `<kind>_calls` counts calls with a schema violation of that kind. `good_turns` counts turns that have an answer and
    no cause, except harmless ones (`healed`). `final_answers` counts answers without a call; `empty_finals` counts
    blank ones that follow a tool's result.

    Args:
        steps: The steps of one execution, in order.
        occurrences: The result of `find_occurrences` for these steps.
    """
    calls = [step for step in steps if isinstance(step, ToolRun)]
    answers = [step for step in steps if isinstance(step, ExchangeAttempt) and step.answer is not None]
    answered_turns = {step.turn for step in answers}
    bad_turns = {occurrence.turn for occurrence in occurrences if not occurrence.healed}
    violations = [{error.kind for error in step.result.schema_errors} for step in calls]
    return {
        "failed_calls": sum(not step.ok for step in calls),
        **{f"{kind}_calls": sum(kind in kinds for kinds in violations) for kind in VIOLATION_KINDS},
        "answered_turns": len(answered_turns),
        "good_turns": len(answered_turns - bad_turns),
        "final_answers": sum(not step.answer.calls_found for step in answers if step.answer is not None),
        "empty_finals": sum(occurrence.code == "empty_final" for occurrence in occurrences),
    }
