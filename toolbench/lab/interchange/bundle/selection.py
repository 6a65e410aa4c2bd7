"""Selection of the rows of a run for its bundle, and the list of the data that is left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import models
from django.db.models import Prefetch, QuerySet

from toolbench.lab.interchange.bundled_cases import BundledCase, get_bundled_cases
from toolbench.lab.interchange.manifest import LeftOutItem
from toolbench.lab.interchange.scenario_names import SCENARIO_COLUMNS, rename_scenarios
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Case, Cell, Judgement, Run, RunConfig, Step, Trial
from toolbench.lab.scenarios.catalogue import find_private
from toolbench.lab.traces.body_batches import load_bodies

_TRIALS_PER_BATCH = 100  # trials that are loaded at a time, without the bodies of their steps


class BundleError(Exception):
    """Raised if a bundle, or another export of the same rows, cannot be written; the message gives the reason."""


class UnknownRunError(BundleError):
    """Raised if a run does not exist or was deleted."""


@dataclass(frozen=True, slots=True)
class BundleSelection:
    """Rows of a run for its bundle.

    The selection names the scenarios of an imported run as the imported file does. Their slugs in this database may
    differ.

    Attributes:
        run: the run.
        configs: configurations of the cells, by position.
        cells: exported cells, by position.
        left_out: data that the bundle does not contain.
        trial_count: number of finished trials of these cells.
        names: slug in this database by slug in the imported file, of scenarios that the import renamed.
        private: slugs of the private ones among the scenarios of `cells`.
        cases: the versions of test cases that the cells or the verdicts on their trials used.
    """

    run: Run
    configs: tuple[RunConfig, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOutItem, ...]
    trial_count: int
    names: Mapping[str, str]
    private: frozenset[str]
    cases: tuple[BundledCase, ...]

    def iter_trials(self) -> Iterator[Trial]:
        """Yield the finished trials with steps and bodies, by position, without loading all of them at once."""
        steps = Prefetch("steps", Step.objects.order_by("execution", "ordinal"))
        finished_trials = (
            _list_finished_trials(self.run, self.cells)
            .select_related("config", "cell")
            .prefetch_related(steps, "judgements")
        )
        for trial in load_bodies(finished_trials.order_by("position", "pk").iterator(chunk_size=_TRIALS_PER_BATCH)):
            yield self._use_original_names_in(trial)

    def _use_original_names_in(self, trial: Trial) -> Trial:
        """Give the loaded rows of a trial the scenario slugs of the imported file, and return the trial."""
        if self.names:
            original_names = {local_name: original_name for original_name, local_name in self.names.items()}
            for row in (trial, trial.cell, *trial.judgements.all()):
                _rename_row(row, original_names)
        return trial


def select_for_bundle(run_id: int, *, private: bool = False) -> BundleSelection:
    """Return the rows for a run's bundle, after recomputing its stale cells.

    Args:
        run_id: the run.
        private: whether private scenarios are included.

    Raises:
        UnknownRunError: the run does not exist or was deleted.
        BundleError: the bundle would have no cell.
    """
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise UnknownRunError(f"There is no run {run_id}.")
    recompute_all_stale(run.pk)
    all_cells = tuple(run.cells.select_related("config").order_by("position", "pk"))
    private_scenarios = find_private_scenarios(run, (cell.scenario for cell in all_cells))
    left_out_scenarios = frozenset() if private else private_scenarios
    cells = tuple(cell for cell in all_cells if cell.scenario not in left_out_scenarios)
    config_ids = {cell.config_id for cell in cells}
    configs = tuple(run.configs.filter(pk__in=config_ids).order_by("position", "pk"))
    if not all_cells:
        raise BundleError(f"Run {run_id} has no cell, so nothing was exported.")
    if not cells:
        raise BundleError(
            f"All test cases of run {run_id} are private, so nothing was exported. Include private test cases: tick "
            "the box on the run's page, or add --private."
        )
    left_out = tuple(_iter_left_out(run, cells, [cell for cell in all_cells if cell.scenario in left_out_scenarios]))
    selection = BundleSelection(
        run=run,
        configs=configs,
        cells=cells,
        left_out=left_out,
        trial_count=_list_finished_trials(run, cells).count(),
        names=run.origin.get("renamed", {}) if run.imported else {},
        private=private_scenarios & {cell.scenario for cell in cells},
        cases=get_bundled_cases(_list_used_versions(run, cells)),
    )
    return _use_original_names(selection) if selection.names else selection


def _use_original_names(selection: BundleSelection) -> BundleSelection:
    """Return the selection with the scenario slugs of the imported file. Its cells are renamed in place, not saved."""
    original_names = {local_name: original_name for original_name, local_name in selection.names.items()}
    for cell in selection.cells:
        _rename_row(cell, original_names)
    return replace(
        selection,
        private=frozenset(original_names.get(slug, slug) for slug in selection.private),
        cases=tuple(replace(case, slug=original_names.get(case.slug, case.slug)) for case in selection.cases),
    )


def _rename_row(row: models.Model, names: Mapping[str, str]) -> None:
    """Rename scenarios in the loaded columns of a row, without saving the row."""
    scenario_columns = {column: value for column, value in vars(row).items() if column in SCENARIO_COLUMNS}
    for column, value in rename_scenarios(scenario_columns, names).items():
        setattr(row, column, value)


def _list_finished_trials(run: Run, cells: Iterable[Cell]) -> QuerySet[Trial]:
    return run.trials.filter(state=Trial.State.DONE, cell__in=list(cells))


def _list_used_versions(run: Run, cells: Sequence[Cell]) -> set[tuple[str, int]]:
    """Return the (scenario slug, version) pairs of the cells and of all verdicts on their trials, with one query."""
    judgements = Judgement.objects.filter(trial__in=_list_finished_trials(run, cells)).order_by()
    judged_versions = judgements.values_list("trial__scenario", "scenario_version").distinct()
    return {(cell.scenario, cell.scenario_version) for cell in cells} | set(judged_versions)


def find_private_scenarios(run: Run, scenario_slugs: Iterable[str]) -> frozenset[str]:
    """Return those of the given scenarios of a run that are private, so that they are exported only on request.

    Test cases of private sets are private. In an imported run, so are the scenarios that the imported file lists as
    private; in any other run, so are scenarios that no longer exist.
    """
    slugs = frozenset(scenario_slugs)
    if run.imported:
        local_slugs = Case.objects.filter(slug__in=slugs, set__public=False).values_list("slug", flat=True)
        return frozenset({*local_slugs, *(slugs & set(run.origin.get("private", ())))})
    return find_private(slugs)


def _iter_left_out(run: Run, cells: Sequence[Cell], private_cells: Sequence[Cell]) -> Iterator[LeftOutItem]:
    """Yield what the bundle does not contain.

    Args:
        run: the run.
        cells: the exported cells.
        private_cells: cells that are left out because their scenarios are private.
    """
    yield LeftOutItem(
        "keys and secret headers", "masked with equal length before they were stored, and masked again in this export"
    )
    yield LeftOutItem(
        "notes, labels of trials, the owner's name, names of workers", "they concern people and one machine"
    )
    if private_cells:
        trial_count = run.trials.filter(cell__in=list(private_cells)).count()
        scenario_count = len({cell.scenario for cell in private_cells})
        yield LeftOutItem(
            f"{scenario_count} private test cases with {trial_count} trials",
            "private test cases are exported only on request",
        )
    if open_trial_count := run.trials.filter(cell__in=list(cells)).exclude(state=Trial.State.DONE).count():
        yield LeftOutItem(f"{open_trial_count} trials", "they were not finished")
