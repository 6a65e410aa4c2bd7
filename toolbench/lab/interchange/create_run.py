"""Creation of the rows of an imported run, all in one transaction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser
from django.db import DataError, IntegrityError, connection, transaction

from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.bundled_cases import BundledCase, create_cases
from toolbench.lab.interchange.copy_rows import copy_rows
from toolbench.lab.interchange.origin import Origin
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.interchange.scenario_names import rename_scenarios
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.values import compute_rate
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial

TRIALS_PER_BATCH = 200  # a batch also ends as soon as its rows exceed MAX_BATCH_BYTES
MAX_BATCH_BYTES = 8 << 20
# Function of the number of trials stored so far and the expected number. An exception in it aborts the import.
OnProgress = Callable[[int, int], object]
ColumnValues = dict[str, Any]
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class NewStep:
    """Step that is about to be created.

    Attributes:
        step: column values of the step.
        body: column values of its body.
    """

    step: ColumnValues
    body: ColumnValues


@dataclass(frozen=True, slots=True)
class NewTrial:
    """Trial that is about to be created, with its steps and judgements.

    Attributes:
        config: index in `NewRun.configs`.
        cell: index in `NewRun.cells`.
        trial: column values of the trial.
        steps: its steps, in order.
        judgements: column values of each judgement.
    """

    config: int
    cell: int
    trial: ColumnValues
    steps: tuple[NewStep, ...]
    judgements: tuple[ColumnValues, ...] = ()


@dataclass(frozen=True, slots=True)
class NewCell:
    """Cell that is about to be created.

    Attributes:
        config: index in `NewRun.configs`.
        cell: column values of the cell.
    """

    config: int
    cell: ColumnValues


@dataclass(frozen=True, slots=True)
class NewRun:
    """Rows of a run that is about to be created.

    Attributes:
        run: column values of the run.
        configs: column values of each configuration.
        cells: cells of all configurations.
        trials: trials of all cells, read one by one while they are stored.
        figure_reader: reader of the trials' figures; its counts of implausible figures are complete once `trials` is
            exhausted.
        trial_count: expected number of trials, for the progress.
        cases: versions of test cases that the trials or their verdicts used.
    """

    run: ColumnValues
    configs: tuple[ColumnValues, ...]
    cells: tuple[NewCell, ...]
    trials: Iterable[NewTrial]
    figure_reader: FigureReader
    trial_count: int
    cases: tuple[BundledCase, ...] = ()


def check_not_imported(sha256: str) -> None:
    """Check that no run with the same evidence was imported. Deleted runs are ignored.

    Args:
        sha256: SHA-256 of a bundle's evidence, or of a whole log file.

    Raises:
        RunImportError: there is such a run.
    """
    existing_run_ids = Run.objects.filter(imported=True, deleted_at=None, origin__sha256=sha256).values_list(
        "pk", flat=True
    )
    if existing_run_ids:
        raise RunImportError(
            f"The same evidence was imported already, as run {existing_run_ids[0]}. Nothing was imported."
        )


def ignore_progress(done: int, total: int) -> None:
    """Ignore the progress of an import."""


def create_run(
    new_run: NewRun, origin: Origin, *, owner: AbstractBaseUser | None, progress: OnProgress = ignore_progress
) -> Run:
    """Create the imported run and its test cases in one transaction.

    The run has no provider, so its trials cannot be repeated. Known secrets are masked in its trials.

    Args:
        new_run: the rows.
        origin: where the rows come from. Before it is stored, `renamed` is set, `private` gets the new slugs, and the
            sentence about implausible figures is appended to `note`.
        owner: owner of the run; None without sign-in.
        progress: called after each batch of trials.

    Raises:
        RunImportError: the evidence was imported before, or a row cannot be stored.
    """
    with _translate_row_errors(), transaction.atomic():
        _lock_evidence(origin.sha256)
        check_not_imported(origin.sha256)
        new_scenario_names = create_cases(new_run.cases, {str(cell.cell.get("scenario", "")) for cell in new_run.cells})
        private_scenarios = tuple(new_scenario_names.get(slug, slug) for slug in origin.private)
        origin = replace(origin, private=private_scenarios, renamed=new_scenario_names)
        run = _create_run_row(new_run, origin, owner)
        created_run = _CreatedRun(run, _create_configs(run, new_run.configs), new_scenario_names)
        created_run.cells = _create_cells(created_run, new_run.cells)
        masker = load_known_secrets().masker
        stored_count = 0
        for batch in _iter_batches(new_run.trials):
            stored_count += _create_trials(created_run, masker.mask_value(batch))
            progress(stored_count, new_run.trial_count)
        final_origin = replace(origin, note=f"{origin.note} {new_run.figure_reader.sentence}".strip())
        Run.objects.filter(pk=run.pk).update(trial_count=stored_count, origin=final_origin.to_json())
        recompute([cell.pk for cell in created_run.cells])
        _check_counts(run)
    run.refresh_from_db()
    return run


def _lock_evidence(sha256: str) -> None:
    """Lock this evidence until the transaction ends, so that two imports of it do not run at the same time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [sha256])


@dataclass(slots=True)
class _CreatedRun:
    """Rows that were created for a new run.

    Attributes:
        configs: configurations in the order of `NewRun.configs`.
        scenario_names: new scenario slug by old slug, where they differ.
        cells: cells in the order of `NewRun.cells`.
    """

    run: Run
    configs: list[RunConfig]
    scenario_names: Mapping[str, str]
    cells: list[Cell] = field(default_factory=list)


@contextmanager
def _translate_row_errors() -> Iterator[None]:
    """Raise RunImportError in place of an exception about a row that cannot be stored."""
    try:
        yield
    except (InvalidRowError, DataError, IntegrityError, ValueError, TypeError, IndexError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunImportError(f"A row cannot be stored: {message[:300]}. Nothing was imported.") from error


def _create_run_row(new_run: NewRun, origin: Origin, owner: AbstractBaseUser | None) -> Run:
    """Create the row of the run. A run that had not ended becomes cancelled, since no worker continues it."""
    columns = dict(new_run.run)
    if columns.get("state") not in Run.ENDED:
        columns["state"] = Run.State.CANCELLED
    created = columns.pop("created_at", None)
    run = Run(**columns, imported=True, origin=origin.to_json())
    run.owner_id = owner.pk if owner else None
    run.save()
    if created:
        Run.objects.filter(pk=run.pk).update(created_at=created)  # `auto_now_add` has set the time of the import
    return run


def _create_configs(run: Run, configs: Sequence[ColumnValues]) -> list[RunConfig]:
    return RunConfig.objects.bulk_create(RunConfig(**columns, run=run) for columns in configs)


def _create_cells(created_run: _CreatedRun, new_cells: Sequence[NewCell]) -> list[Cell]:
    cells = (
        Cell(
            **rename_scenarios(new_cell.cell, created_run.scenario_names),
            run=created_run.run,
            config=_get_row(created_run.configs, new_cell.config),
        )
        for new_cell in new_cells
    )
    return Cell.objects.bulk_create(cells)


def _create_trials(created_run: _CreatedRun, new_trials: Sequence[NewTrial]) -> int:
    """Create trials with their steps and judgements; return the number of trials."""
    trial_ids = copy_rows(Trial, [_build_trial(created_run, new_trial) for new_trial in new_trials])
    trial_steps = [
        (trial_id, step) for trial_id, new_trial in zip(trial_ids, new_trials, strict=True) for step in new_trial.steps
    ]
    step_ids = copy_rows(Step, [{**new_step.step, "trial_id": trial_id} for trial_id, new_step in trial_steps])
    copy_rows(
        StepBody,
        [{**new_step.body, "step_id": step_id} for step_id, (_, new_step) in zip(step_ids, trial_steps, strict=True)],
    )
    trial_judgements = (
        (trial_id, columns)
        for trial_id, new_trial in zip(trial_ids, new_trials, strict=True)
        for columns in new_trial.judgements
    )
    copy_rows(
        Judgement,
        [
            {**rename_scenarios(columns, created_run.scenario_names), "trial_id": trial_id}
            for trial_id, columns in trial_judgements
        ],
    )
    return len(trial_ids)


def _build_trial(created_run: _CreatedRun, new_trial: NewTrial) -> ColumnValues:
    config, cell = _get_row(created_run.configs, new_trial.config), _get_row(created_run.cells, new_trial.cell)
    if cell.config_id != config.pk or not new_trial.trial.get("outcome"):
        raise InvalidRowError("a trial has no outcome, or belongs to a cell of another configuration")
    local_columns = {
        "state": Trial.State.DONE,
        "run_id": created_run.run.pk,
        "config_id": config.pk,
        "cell_id": cell.pk,
    }
    return rename_scenarios(new_trial.trial, created_run.scenario_names) | local_columns


def _check_counts(run: Run) -> None:
    """Check that every rate of each cell can be computed from its counts.

    Raises:
        InvalidRowError: a count is larger than its denominator, or the error probability of a cell's interval is not a
            fraction.
    """
    for cell in run.cells.order_by("pk"):
        tally = tally_cells([cell])
        for metric in METRICS.values():
            try:
                compute_rate(metric, tally, tally)
            except (ValueError, ArithmeticError) as error:
                raise InvalidRowError(
                    f"the trials of {cell.scenario} cannot be counted as “{metric.denominator}”"
                ) from error


def _get_row(rows: Sequence[_Row], index: int) -> _Row:
    if not 0 <= index < len(rows):
        raise InvalidRowError(f"there is no row {index}")
    return rows[index]


def _iter_batches(new_trials: Iterable[NewTrial]) -> Iterator[list[NewTrial]]:
    batch: list[NewTrial] = []
    batch_bytes = 0
    for new_trial in new_trials:
        batch.append(new_trial)
        batch_bytes += _estimate_bytes(new_trial)
        if len(batch) == TRIALS_PER_BATCH or batch_bytes > MAX_BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch


def _estimate_bytes(new_trial: NewTrial) -> int:
    """Return the approximate size of all rows of a trial in bytes."""
    body_bytes = sum(len(part or b"") for step in new_trial.steps for part in step.body.values())
    rows = (new_trial.trial, *new_trial.judgements, *(step.step for step in new_trial.steps))
    return body_bytes + sum(len(str(value)) for row in rows for value in row.values())
