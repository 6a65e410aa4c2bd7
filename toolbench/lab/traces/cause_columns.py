"""The columns of a finished trial that follow from its steps: counts of steps, and causes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from toolbench.engine.types import JsonObject
from toolbench.evals.causes.classify import (
    CauseOccurrence,
    TrialEnd,
    build_cause_signature,
    find_occurrences,
    group_occurrences,
)
from toolbench.evals.causes.decisive import find_cause
from toolbench.evals.causes.step_counts import count_steps
from toolbench.evals.causes.step_types import WireStep
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.evals.expected_calls import CallGrades
from toolbench.lab.traces.step_facts import to_column_json, to_column_text

CAUSE_COLUMNS = {
    "failed_calls": "integer",
    "missing_calls": "integer",
    "type_calls": "integer",
    "enum_calls": "integer",
    "range_calls": "integer",
    "extra_calls": "integer",
    "answered_turns": "integer",
    "good_turns": "integer",
    "final_answers": "integer",
    "empty_finals": "integer",
    "call_expected": "boolean",
    "arguments_asked": "integer",
    "arguments_right": "integer",
    "cause": "text",
    "cause_signature": "text",
    "causes": "jsonb",
    "taxonomy": "smallint",
}
MAX_CAUSES = 40  # kinds of causes kept of one trial


def build_cause_columns(
    steps: Sequence[WireStep], trial: Mapping[str, object], *, scenario: str, graded: CallGrades
) -> JsonObject:
    """Return the CAUSE_COLUMNS of a finished trial.

    Args:
        steps: the steps of the execution that counts.
        trial: holds outcome, end and failure_class.
        scenario: slug of the scenario, for the cause's signature.
        graded: the grades of the calls.
    """
    found = find_occurrences(steps)
    outcome, end, failure_class = (str(trial[name]) for name in ("outcome", "end", "failure_class"))
    ending = TrialEnd(outcome, end, failure_class, graded.call_expected, graded.needs)
    cause = find_cause(steps, found, ending)
    return {
        **count_steps(steps, found),
        "call_expected": graded.call_expected,
        "arguments_asked": graded.graded,
        "arguments_right": graded.right,
        "cause": cause.code if cause else "",
        "cause_signature": to_column_text(build_cause_signature(cause, scenario), 240) if cause else "",
        "causes": [_to_stored_cause(occurrence) for occurrence in group_occurrences(found)[:MAX_CAUSES]],
        "taxonomy": read_taxonomy_version(),
    }


def _to_stored_cause(seen: CauseOccurrence) -> JsonObject:
    kept: JsonObject = to_column_json(asdict(seen))
    return {**kept, "path": to_column_text(seen.path, 300)}
