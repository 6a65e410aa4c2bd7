"""Selection of the rows of a run that go into its bundle, and a list of what is left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import models
from django.db.models import Prefetch, QuerySet

from toolbench.lab.interchange.bundled_cases import BundledCase, get_bundled_cases
from toolbench.lab.interchange.manifest import LeftOutItem
from toolbench.lab.interchange.scenario_names import SCENARIO_COLUMNS, rename_scenarios
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Case, Cell, Run, RunConfig, Step, Trial
from toolbench.lab.scenarios.catalogue import is_private
from toolbench.lab.traces.body_batches import load_bodies

_TRIALS_PER_BATCH = 100  # in memory


class BundleError(Exception):
    """A bundle that cannot be written; its text says why."""


class UnknownRunError(BundleError):
    """A run that does not exist or was deleted."""


@dataclass(frozen=True, slots=True)
class BundleSelection:
    """Rows of a run that go into its bundle. Scenarios have the names that they had where they were tried.

    Attributes:
        run: the run.
        configs: configurations of the cells, by position.
        cells: by position.
        left_out: what the bundle does not contain.
        count: number of trials.
        names: names in this database by names where they were tried, of an imported run whose scenarios were renamed.
        private: private scenarios among those of the cells.
        cases: test cases among the scenarios of the cells.
    """

    run: Run
    configs: tuple[RunConfig, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOutItem, ...]
    count: int
    names: Mapping[str, str]
    private: frozenset[str]
    cases: tuple[BundledCase, ...]

    def trials(self) -> Iterator[Trial]:
        """Yield finished trials by position, with steps and bodies; only some are in memory at a time."""
        steps = Prefetch("steps", Step.objects.order_by("execution", "ordinal"))
        chosen = (
            _list_finished(self.run, self.cells).select_related("config", "cell").prefetch_related(steps, "judgements")
        )
        for trial in load_bodies(chosen.order_by("position", "pk").iterator(chunk_size=_TRIALS_PER_BATCH)):
            yield self._use_original_names(trial)

    def _use_original_names(self, trial: Trial) -> Trial:
        if self.names:
            there = {here: there for there, here in self.names.items()}
            for row in (trial, trial.cell, *trial.judgements.all()):
                _rename_row(row, there)
        return trial


def select_for_bundle(run_id: int, *, private: bool = False) -> BundleSelection:
    """Return what goes into a run's bundle. Private scenarios are included only if `private` is set.

    Raises:
        UnknownRunError: there is no such run.
        BundleError: nothing would be in the bundle, since all cases are private.
    """
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise UnknownRunError(f"There is no run {run_id}.")
    recompute_all_stale(run.pk)
    all_cells = tuple(run.cells.select_related("config").order_by("position", "pk"))
    secret = find_private_scenarios(run, (cell.scenario for cell in all_cells))
    cells = tuple(cell for cell in all_cells if private or cell.scenario not in secret)
    kept = {cell.config_id for cell in cells}
    configs = tuple(run.configs.filter(pk__in=kept).order_by("position", "pk"))
    if not cells:
        raise BundleError(
            f"All cases of run {run_id} are private, so no bundle was written. Say that they may travel: a tick on the "
            "run's page, or --private."
        )
    left_out = tuple(_iter_left_out(run, cells, [cell for cell in all_cells if cell not in cells]))
    chosen = BundleSelection(
        run=run,
        configs=configs,
        cells=cells,
        left_out=left_out,
        count=_list_finished(run, cells).count(),
        names=run.origin.get("renamed", {}) if run.imported else {},
        private=secret & {cell.scenario for cell in cells},
        cases=get_bundled_cases((cell.scenario, cell.scenario_version) for cell in cells),
    )
    return _use_original_names(chosen) if chosen.names else chosen


def _use_original_names(chosen: BundleSelection) -> BundleSelection:
    there = {here: there for there, here in chosen.names.items()}
    for cell in chosen.cells:
        _rename_row(cell, there)
    return replace(
        chosen,
        private=frozenset(there.get(slug, slug) for slug in chosen.private),
        cases=tuple(replace(seed, slug=there.get(seed.slug, seed.slug)) for seed in chosen.cases),
    )


def _rename_row(row: models.Model, names: Mapping[str, str]) -> None:
    """Rename scenarios in the columns of a row, without saving it."""
    named = {column: value for column, value in vars(row).items() if column in SCENARIO_COLUMNS}
    for column, value in rename_scenarios(named, names).items():
        setattr(row, column, value)


def _list_finished(run: Run, cells: Iterable[Cell]) -> QuerySet[Trial]:
    return run.trials.filter(state=Trial.State.DONE, cell__in=list(cells))


def list_private_cases(run_id: int) -> tuple[str, ...]:
    """Return the private scenarios of a run, sorted. They are exported only on request."""
    run = Run.objects.get(pk=run_id)
    return tuple(
        sorted(find_private_scenarios(run, run.cells.order_by().values_list("scenario", flat=True).distinct()))
    )


def find_private_scenarios(run: Run, tried: Iterable[str]) -> frozenset[str]:
    """Return the private scenarios among those of a run.

    They are test cases of private sets, and scenarios that no longer exist. In an imported run, they are those that
    were private where they were tried, or are in a private set here.
    """
    slugs = frozenset(tried)
    if run.imported:
        here = Case.objects.filter(slug__in=slugs, set__public=False).values_list("slug", flat=True)
        return frozenset({*here, *(slugs & set(run.origin.get("private", ())))})
    return frozenset(slug for slug in slugs if is_private(slug))


def _iter_left_out(run: Run, cells: Sequence[Cell], hidden: Sequence[Cell]) -> Iterator[LeftOutItem]:
    yield LeftOutItem(
        "keys and secret headers", "masked with equal length before they were stored, and searched for again"
    )
    yield LeftOutItem(
        "notes, labels of trials, the owner's name, names of workers", "they concern people and one machine"
    )
    if hidden:
        count = run.trials.filter(cell__in=list(hidden)).count()
        slugs = len({cell.scenario for cell in hidden})
        yield LeftOutItem(
            f"{slugs} private cases with {count} trials", "private cases stay here unless they are asked for"
        )
    if waiting := run.trials.filter(cell__in=list(cells)).exclude(state=Trial.State.DONE).count():
        yield LeftOutItem(f"{waiting} trials", "they were not finished")
