"""Columns of a finished trial for the counts of its steps, the grades of its calls and its causes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from toolbench.engine.types import JsonObject
from toolbench.evals.causes.classify import (
    CauseOccurrence,
    TrialEnd,
    build_cause_signature,
    find_occurrences,
    group_occurrences,
    remove_indices,
)
from toolbench.evals.causes.decisive import find_cause
from toolbench.evals.causes.step_counts import count_steps
from toolbench.evals.causes.step_types import WireStep
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.evals.expected_calls import CallGrades
from toolbench.lab.traces.step_facts import to_column_json, to_column_text

CAUSE_COLUMNS = {  # PostgreSQL types by column
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
    "wrong_paths": "jsonb",
    "cause": "text",
    "cause_signature": "text",
    "causes": "jsonb",
    "taxonomy": "smallint",
}
MAX_CAUSES = 40  # groups of causes with one code and path that are stored for one trial
MAX_SIGNATURE_CHARS = 240  # of `Trial.cause_signature`; a longer signature is truncated
MAX_PATHS = 40  # paths of wrong arguments that are stored for one trial
MAX_PATH_CHARS = 300


def build_cause_columns(
    steps: Sequence[WireStep], trial_columns: Mapping[str, object], *, scenario: str, grades: CallGrades
) -> JsonObject:
    """Return a value for each of the CAUSE_COLUMNS of a finished trial.

    Args:
        steps: steps of the trial's current execution, in order.
        trial_columns: columns of the trial; outcome, end and failure_class are read.
        scenario: slug of the scenario, part of the cause's signature.
        grades: grades of the trial's calls against the expected calls.
    """
    occurrences = find_occurrences(steps)
    outcome, end, failure_class = (str(trial_columns[name]) for name in ("outcome", "end", "failure_class"))
    trial_end = TrialEnd(outcome, end, failure_class, grades.call_expected, grades.needs)
    cause = find_cause(steps, occurrences, trial_end)
    return {
        **count_steps(steps, occurrences),
        "call_expected": grades.call_expected,
        "arguments_asked": grades.graded,
        "arguments_right": grades.right,
        "wrong_paths": _list_stored_paths(grades.wrong_paths),
        "cause": cause.code if cause else "",
        "cause_signature": to_column_text(build_cause_signature(cause, scenario), MAX_SIGNATURE_CHARS) if cause else "",
        "causes": [_to_stored_cause(occurrence) for occurrence in group_occurrences(occurrences)[:MAX_CAUSES]],
        "taxonomy": read_taxonomy_version(),
    }


def _list_stored_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths without list indexes, each once: at most MAX_PATHS, each truncated to MAX_PATH_CHARS."""
    general_paths = (remove_indices(to_column_text(path, MAX_PATH_CHARS)) for path in paths)
    return list(dict.fromkeys(general_paths))[:MAX_PATHS]


def _to_stored_cause(occurrence: CauseOccurrence) -> JsonObject:
    occurrence_json: JsonObject = to_column_json(asdict(occurrence))
    return {**occurrence_json, "path": to_column_text(occurrence.path, MAX_PATH_CHARS)}
