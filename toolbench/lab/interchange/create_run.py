"""Making the rows of an imported run: in one transaction, so that it is there whole or not at all."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser
from django.db import DataError, IntegrityError, connection, transaction

from toolbench.lab.credentials.known_secrets import known_secrets
from toolbench.lab.interchange.bundled_cases import CaseSeed, plant_cases
from toolbench.lab.interchange.copy_rows import copy_rows
from toolbench.lab.interchange.origin import Origin
from toolbench.lab.interchange.plausible_figures import FigureCheck
from toolbench.lab.interchange.row_json import BadRow
from toolbench.lab.interchange.safe_zip import ImportRefused
from toolbench.lab.interchange.scenario_names import renamed
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.definitions import METRICS, rate_for
from toolbench.lab.metrics.tally import tally
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial

AT_ONCE = 200  # trials in memory, unless their bodies reach BYTES_AT_ONCE
BYTES_AT_ONCE = 8 << 20
Progress = Callable[[int, int], object]  # trials stored so far, and of how many; an exception of it ends the import
Columns = dict[str, Any]
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class StepSeed:
    step: Columns
    body: Columns


@dataclass(frozen=True, slots=True)
class TrialSeed:
    """`config` and `cell` are places in the lists of the run."""

    config: int
    cell: int
    trial: Columns
    steps: tuple[StepSeed, ...]
    judgements: tuple[Columns, ...] = ()


@dataclass(frozen=True, slots=True)
class CellSeed:
    config: int
    cell: Columns


@dataclass(frozen=True, slots=True)
class RunSeed:
    """`figures` has read them all once `trials` is at its end."""

    run: Columns
    configs: tuple[Columns, ...]
    cells: tuple[CellSeed, ...]
    trials: Iterable[TrialSeed]
    figures: FigureCheck
    count: int  # of trials, before the first of them is read
    cases: tuple[CaseSeed, ...] = ()


def refuse_twice(sha256: str) -> None:
    """Raises ImportRefused when the same evidence is there already."""
    known = Run.objects.filter(imported=True, deleted_at=None, origin__sha256=sha256).values_list("pk", flat=True)
    if known:
        raise ImportRefused(f"The same evidence was imported already, as run {known[0]}. Nothing was imported.")


def unwatched(done: int, total: int) -> None:
    """Tell nobody how many trials are stored."""


def plant(seed: RunSeed, origin: Origin, *, owner: AbstractBaseUser | None, progress: Progress = unwatched) -> Run:
    """The new run, and the cases it tried. Nothing of it can be sent again by itself: it knows no provider here.
    Raises ImportRefused."""
    with _all_or_nothing(), transaction.atomic():
        _wait_for_same(origin.sha256)
        refuse_twice(origin.sha256)
        names = plant_cases(seed.cases, {str(one.cell.get("scenario", "")) for one in seed.cells})
        private = tuple(names.get(slug, slug) for slug in origin.private)
        origin = replace(origin, private=private, renamed=names)
        run = _run(seed, origin, owner)
        bed = _Bed(run, _configs(run, seed.configs), names)
        bed.cells = _cells(bed, seed.cells)
        masker = known_secrets().masker
        count = 0
        for batch in _batches(seed.trials):
            count += _trials(bed, masker.mask_value(batch))
            progress(count, seed.count)
        noted = replace(origin, note=f"{origin.note} {seed.figures.sentence}".strip())
        Run.objects.filter(pk=run.pk).update(trial_count=count, origin=noted.plain())
        recompute([cell.pk for cell in bed.cells])
        _check_counts(run)
    run.refresh_from_db()
    return run


def _wait_for_same(sha256: str) -> None:
    """Wait until no other import of the same evidence is under way; hold back later ones until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [sha256])


@dataclass(slots=True)
class _Bed:
    run: Run
    configs: list[RunConfig]
    names: Mapping[str, str]
    cells: list[Cell] = field(default_factory=list)


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    try:
        yield
    except (BadRow, DataError, IntegrityError, ValueError, TypeError, IndexError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ImportRefused(f"A row cannot be stored: {said[:300]}. Nothing was imported.") from error


def _run(seed: RunSeed, origin: Origin, owner: AbstractBaseUser | None) -> Run:
    columns = dict(seed.run)
    if columns.get("state") not in Run.ENDED:
        columns["state"] = Run.State.CANCELLED
    created = columns.pop("created_at", None)
    run = Run(**columns, imported=True, origin=origin.plain())
    run.owner_id = owner.pk if owner else None
    run.save()
    if created:
        Run.objects.filter(pk=run.pk).update(created_at=created)  # the column fills itself when the row is made
    return run


def _configs(run: Run, given: Sequence[Columns]) -> list[RunConfig]:
    return RunConfig.objects.bulk_create(RunConfig(**columns, run=run) for columns in given)


def _cells(bed: _Bed, given: Sequence[CellSeed]) -> list[Cell]:
    made = (Cell(**renamed(one.cell, bed.names), run=bed.run, config=_at(bed.configs, one.config)) for one in given)
    return Cell.objects.bulk_create(made)


def _trials(bed: _Bed, seeds: Sequence[TrialSeed]) -> int:
    ids = copy_rows(Trial, [_trial(bed, seed) for seed in seeds])
    pairs = [(trial_id, one) for trial_id, seed in zip(ids, seeds, strict=True) for one in seed.steps]
    steps = copy_rows(Step, [{**one.step, "trial_id": trial_id} for trial_id, one in pairs])
    copy_rows(StepBody, [{**one.body, "step_id": step_id} for step_id, (_, one) in zip(steps, pairs, strict=True)])
    judged = ((trial_id, columns) for trial_id, seed in zip(ids, seeds, strict=True) for columns in seed.judgements)
    copy_rows(Judgement, [{**renamed(columns, bed.names), "trial_id": trial_id} for trial_id, columns in judged])
    return len(ids)


def _trial(bed: _Bed, seed: TrialSeed) -> Columns:
    config, cell = _at(bed.configs, seed.config), _at(bed.cells, seed.cell)
    if cell.config_id != config.pk or not seed.trial.get("outcome"):
        raise BadRow("a trial has no outcome, or stands in a cell of another configuration")
    placed = {"state": Trial.State.DONE, "run_id": bed.run.pk, "config_id": config.pk, "cell_id": cell.pk}
    return renamed(seed.trial, bed.names) | placed


def _check_counts(run: Run) -> None:
    """Every rate that a page may show of a cell can be one: no count lies above what it is of, and every error is
    a fraction. Raises BadRow."""
    for cell in run.cells.order_by("pk"):
        counts = tally([cell])
        for metric in METRICS.values():
            try:
                rate_for(metric, counts, counts)
            except (ValueError, ArithmeticError) as error:
                raise BadRow(f"the trials of {cell.scenario} cannot be counted as “{metric.denominator}”") from error


def _at(rows: Sequence[_Row], place: int) -> _Row:
    if not 0 <= place < len(rows):
        raise BadRow(f"there is no row {place} to stand in")
    return rows[place]


def _batches(seeds: Iterable[TrialSeed]) -> Iterator[list[TrialSeed]]:
    batch: list[TrialSeed] = []
    size = 0
    for seed in seeds:
        batch.append(seed)
        size += sum(len(part or b"") for one in seed.steps for part in one.body.values())
        if len(batch) == AT_ONCE or size > BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
