"""Storage of steps, outcomes and requeued trials in batches. Each write names the lease of its trial.

The columns are one JSON parameter of each statement and the bodies are arrays of bytes, so a batch of any size needs
one statement for its steps and one for its outcomes. If the database refuses a batch for its content, the batch is
split until the refused row is alone in it. That row is then stored without the texts of the model. An outcome that is
refused again is stored as an internal error.
"""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from psycopg import Cursor

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject
from toolbench.lab.models.counters import TRIAL_COUNTERS
from toolbench.lab.sql import load_statement
from toolbench.lab.traces import cause_columns
from toolbench.lab.traces.step_rows import STEP_COLUMNS, build_bare_row, build_bodies, build_step_row
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.lab.worker import database_thread
from toolbench.lab.worker.claims import requeue
from toolbench.lab.worker.database_thread import is_unavailable, open_pipeline
from toolbench.lab.worker.job_failures import build_internal_error_columns
from toolbench.lab.worker.refused_parameters import build_refused_rows, store_refused
from toolbench.lab.worker.request_budget import reconcile
from toolbench.lab.worker.slots import TrialLease

logger = logging.getLogger(__name__)

# Columns of lab_trial that an outcome can set, with the SQL type of their JSON value.
_OUTCOME_COLUMNS = {
    "outcome": "text",
    "task_pass": "boolean",
    "parity_pass": "boolean",
    "end": "text",
    "failure_class": "text",
    "category": "text",
    "sentence": "text",
    "signature": "text",
    "behaviour_seen": "boolean",
    "avoided": "boolean",
    "verdict": "jsonb",
    "first_bad_ordinal": "integer",
    "final_text": "text",
    "error_hint": "text",
    "answer_hash": "text",
    "duration_ms": "float8",
    "backoff_ms": "float8",
    "model_ms": "float8",
    "tool_ms": "float8",
    "first_byte_ms": "float8",
    "first_token_ms": "float8",
    "first_call_ms": "float8",
    "turns": "integer",
    "requests": "integer",
    "retries": "integer",
    "output_retries": "integer",
    "not_executed": "boolean",
    "input_tokens": "bigint",
    "output_tokens": "bigint",
    "cached_tokens": "bigint",
    "reasoning_tokens": "bigint",
    "cost": "float8",
    "paths": "text",
    "upstream": "text",
    "fingerprint": "text",
    "model_echoed": "text",
    "seed_sent": "boolean",
    "prompt_version": "text",
    "plan_hash": "text",
    "engine_version": "text",
    "client_lag_ms": "float8",
    "tools_dropped": "boolean",
    "rendered_prompt": "text",
    "left_out": "jsonb",
    **dict.fromkeys(TRIAL_COUNTERS, "integer"),
    **cause_columns.CAUSE_COLUMNS,
}
_HEX_COLUMNS = ("final_text", "rendered_prompt")  # stored as bytea; their JSON value is the bytes in hexadecimal


def _render_typed_columns(columns: dict[str, str]) -> str:
    return ", ".join(f'"{name}" {sql_type}' for name, sql_type in columns.items())


def _render_names(columns: dict[str, str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _render_assignment(name: str) -> str:
    """Return the SQL that sets a column; a column without a new value keeps the old one."""
    new_value = f"decode(row.{name}, 'hex')" if name in _HEX_COLUMNS else f'row."{name}"'
    return f'"{name}" = coalesce({new_value}, trial."{name}")'


_WRITE_STEPS = load_statement(
    "worker/store_steps", typed=_render_typed_columns(STEP_COLUMNS), names=_render_names(STEP_COLUMNS)
)

_WRITE_OUTCOMES = load_statement(
    "worker/store_outcomes",
    typed=_render_typed_columns(_OUTCOME_COLUMNS),
    assignments=", ".join(_render_assignment(name) for name in _OUTCOME_COLUMNS),
)


_TAKE_OVER_SLOTS = load_statement("worker/take_over_slots")


@light(frozen=True, slots=True)
class StepWrite:
    """One step of a trial that this worker holds."""

    trial_id: int
    execution: int
    lease: UUID
    step: AnyStep


@light(frozen=True, slots=True)
class OutcomeWrite:
    """The outcome of a trial that this worker holds.

    Attributes:
        columns: values by column; the other columns keep their values.
        unsent_requests: requests that were counted for the trial and not sent.
        steps: all steps of this execution; the trial ends only if all of them are stored.
    """

    trial_id: int
    lease: UUID
    columns: JsonObject
    unsent_requests: int = 0
    steps: Sequence[StepWrite] = ()


@light(frozen=True, slots=True)
class RequeueWrite:
    """A trial that this worker holds and cannot end.

    Attributes:
        unsent_requests: requests that were counted for the trial and not sent.
        has_lost_server: whether the local server of the trial died.
    """

    trial_id: int
    lease: UUID
    unsent_requests: int = 0
    has_lost_server: bool = False


@light(frozen=True, slots=True)
class Batch:
    """Steps, outcomes and requeued trials that are written together.

    Attributes:
        successors: trials that take over the slots of those trials of the batch that end or are queued again.
    """

    steps: Sequence[StepWrite] = ()
    outcomes: Sequence[OutcomeWrite] = ()
    requeues: Sequence[RequeueWrite] = ()
    successors: Sequence[TrialLease] = ()

    @property
    def releasing_writes(self) -> list[OutcomeWrite | RequeueWrite]:
        """Writes after which this worker no longer holds the trial."""
        return [*self.outcomes, *self.requeues]


@light(frozen=True, slots=True)
class WriteResult:
    """Ids of the trials whose outcomes a batch contained.

    A trial whose outcome is in the batch and whose id is in neither set has lost its lease.

    Attributes:
        ended_ids: trials that have ended.
        incomplete_ids: trials that this worker still holds and that have not ended, because steps of them are missing.
    """

    ended_ids: frozenset[int] = frozenset()
    incomplete_ids: frozenset[int] = frozenset()

    def __or__(self, other: "WriteResult") -> "WriteResult":
        return WriteResult(self.ended_ids | other.ended_ids, self.incomplete_ids | other.incomplete_ids)


def write_batch(batch: Batch) -> WriteResult:
    """Store steps, then outcomes, then requeued trials in one transaction.

    Writes under a lost lease change nothing; a dropped outcome is logged. A batch may be written again, even if it was
    stored and only the answer was lost: each row counts once.

    Raises:
        django.db.Error: the database is unavailable, or refused a row in every form. The batch was stored as a whole
            or not at all.
    """
    try:
        with transaction.atomic():
            result = _write_together(batch)
    except Exception as error:
        if is_unavailable(error):
            raise
        with transaction.atomic():  # all parts or none, so that the batch can be written again
            return _write_in_parts(batch, error)
    for outcome in batch.outcomes:
        if outcome.trial_id not in result.ended_ids | result.incomplete_ids:
            trial_id = outcome.trial_id
            logger.warning(
                "Trial %s: its lease was lost, the late verdict is dropped", trial_id, extra={"trial": trial_id}
            )
    return result


def _write_together(batch: Batch) -> WriteResult:
    """Write all parts of a batch. Call it in a transaction."""
    with open_pipeline():
        step_cursors = [_write_steps(batch.steps)] if batch.steps else []
        store_refused(build_refused_rows((item.trial_id, item.step) for item in batch.steps))
        _take_over_slots(batch)
        outcome_cursors = [_write_outcomes(batch.outcomes)] if batch.outcomes else []
    tokens_by_run = Counter({run_id: count for cursor in step_cursors for run_id, count in cursor.fetchall()})
    outcome_rows = {trial_id: run_id for cursor in outcome_cursors for trial_id, run_id in cursor.fetchall()}
    run_by_trial = {trial_id: run_id for trial_id, run_id in outcome_rows.items() if run_id is not None}
    ended_ids = frozenset(run_by_trial)
    lost_server_ids = [item.trial_id for item in batch.requeues if item.has_lost_server]
    trial_leases = [(item.trial_id, item.lease) for item in batch.requeues]
    run_by_trial |= requeue(trial_leases, lost_server_ids=lost_server_ids)
    unsent_by_run: Counter[int] = Counter()
    for item in batch.releasing_writes:
        if item.trial_id in run_by_trial:
            unsent_by_run[run_by_trial[item.trial_id]] += item.unsent_requests
    for run_id in sorted(tokens_by_run.keys() | unsent_by_run.keys()):
        reconcile(run_id, tokens=tokens_by_run[run_id], unsent=unsent_by_run[run_id])
    return WriteResult(ended_ids, frozenset(outcome_rows.keys() - ended_ids))


def _write_in_parts(batch: Batch, error: Exception) -> WriteResult:
    """Write a batch in three parts, in its order; write a single row without the texts of the model.

    Args:
        batch: a batch that the database refused.
        error: why it was refused.
    """
    if len(batch.steps) + len(batch.outcomes) > 1:
        middle_steps, middle = (len(batch.steps) + 1) // 2, len(batch.outcomes) // 2
        write_batch(Batch(steps=batch.steps[:middle_steps], successors=batch.successors))
        first = write_batch(Batch(steps=batch.steps[middle_steps:], outcomes=batch.outcomes[:middle]))
        return first | write_batch(Batch(outcomes=batch.outcomes[middle:], requeues=batch.requeues))
    logger.error("A row cannot be stored as it is, and is stored without its texts: %s", error)
    with connection.wrap_database_errors:
        _take_over_slots(batch)
    for step in batch.steps:
        with connection.wrap_database_errors:
            _write_steps([step], with_texts=False)  # without its tokens, which nothing adds to the run here
    bare_outcomes = [_remove_texts(outcome) for outcome in batch.outcomes]
    try:
        with transaction.atomic():
            return _write_together(Batch(outcomes=bare_outcomes, requeues=batch.requeues))
    except Exception as second_error:
        if is_unavailable(second_error):
            raise
        logger.error(
            "The row cannot be stored without its texts either, and is stored as an internal error: %s", second_error
        )
    internal_errors = [_build_internal_error(outcome) for outcome in batch.outcomes]
    with transaction.atomic():
        return _write_together(Batch(outcomes=internal_errors, requeues=batch.requeues))


def _write_steps(steps: Sequence[StepWrite], *, with_texts: bool = True) -> Cursor[Any]:
    """Store steps.

    Returns:
        A cursor with pairs of a run id and the number of tokens of those steps that were not stored before.
    """
    build_row, build_body_bytes = (
        (build_step_row, build_bodies) if with_texts else (build_bare_row, _build_empty_bodies)
    )
    rows = [_add_row_keys(place, item, build_row(item.step)) for place, item in enumerate(steps, start=1)]
    bodies: tuple[list[bytes], ...] = tuple(
        map(list, zip(*(build_body_bytes(item.step) for item in steps), strict=True))
    )
    return database_thread.open_cursor().execute(_WRITE_STEPS, [json.dumps(rows), *bodies])


def _add_row_keys(place: int, item: StepWrite, row: JsonObject) -> JsonObject:
    keys = {"lease": str(item.lease), "trial_id": item.trial_id, "execution": item.execution}
    return {"place": place, **keys, **row}


def _build_empty_bodies(_: AnyStep) -> tuple[bytes, bytes, bytes]:
    return b"", b"", b"{}"


def _write_outcomes(outcomes: Sequence[OutcomeWrite]) -> Cursor[Any]:
    """Store outcomes.

    Returns:
        A cursor with pairs of a trial id and its run id. The run id is NULL if the trial has not ended because steps
        of it are missing. Trials whose lease is lost have no row.
    """
    rows = [
        {"trial_id": item.trial_id, "lease": str(item.lease), "steps": _count_steps(item.steps), **item.columns}
        for item in outcomes
    ]
    return database_thread.open_cursor().execute(_WRITE_OUTCOMES, [json.dumps(rows)])


def _take_over_slots(batch: Batch) -> None:
    if batch.successors:
        ids, leases = (list(values) for values in zip(*batch.successors, strict=True))
        locked_ids = [*ids, *(item.trial_id for item in batch.releasing_writes)]
        database_thread.open_cursor().execute(_TAKE_OVER_SLOTS, [locked_ids, ids, leases])


def _count_steps(steps: Sequence[StepWrite]) -> int:
    return len({write.step.ordinal for write in steps})


def _remove_texts(outcome: OutcomeWrite) -> OutcomeWrite:
    """Return the outcome with its counts, booleans and codes, without other texts, times and cost."""
    code_columns = ("outcome", "end", "failure_class", "category", "cause")
    columns = {
        name: value for name, value in outcome.columns.items() if _is_count_or_boolean(value) or name in code_columns
    }
    sentence = "The database refused the texts of this verdict. Its outcome and its counts are stored."
    return replace(outcome, columns={**columns, "sentence": sentence})


def _build_internal_error(outcome: OutcomeWrite) -> OutcomeWrite:
    """Return an internal error in place of the outcome, without any of its values."""
    return replace(outcome, columns=build_internal_error_columns("The database refused this verdict."))


def _is_count_or_boolean(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**31
