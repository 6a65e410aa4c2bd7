"""What of a run goes into its bundle, and what stays and why."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from toolbench.lab.bundles.manifest import LeftOut
from toolbench.lab.cells import recompute_stale
from toolbench.lab.known_scenarios import is_private
from toolbench.lab.models import Cell, Run, RunConfig, Step, Trial

_AT_ONCE = 20  # trials with all their bodies in memory


class BundleRefused(Exception):
    """A bundle that cannot be written; its text says why."""


class UnknownRun(BundleRefused):
    pass


@dataclass(frozen=True, slots=True)
class Chosen:
    """Configurations and cells in the order of their positions; trials are numbered in the order they ran."""

    run: Run
    configs: tuple[RunConfig, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...]
    count: int

    def trials(self) -> Iterator[Trial]:
        """Finished ones with steps and bodies, some at a time."""
        steps = Prefetch("steps", Step.objects.select_related("body").order_by("execution", "ordinal"))
        chosen = _finished(self.run, self.cells).select_related("config", "cell").prefetch_related(steps, "judgements")
        return chosen.order_by("position", "pk").iterator(chunk_size=_AT_ONCE)


def choose(run_id: int, *, private: bool = False) -> Chosen:
    """Raises BundleRefused for an unknown run, and for one of which nothing may be shown."""
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise UnknownRun(f"There is no run {run_id}.")
    while recompute_stale():
        pass
    every = tuple(run.cells.select_related("config").order_by("position", "pk"))
    hidden = frozenset() if private else private_scenarios(run, every)
    cells = tuple(cell for cell in every if cell.scenario not in hidden)
    kept = {cell.config_id for cell in cells}
    configs = tuple(run.configs.filter(pk__in=kept).order_by("position", "pk"))
    if not cells:
        raise BundleRefused(f"All cases of run {run_id} are private: ask for them with --private.")
    left_out = tuple(_left_out(run, cells, [cell for cell in every if cell not in cells]))
    return Chosen(run, configs, cells, left_out, _finished(run, cells).count())


def _finished(run: Run, cells: Iterable[Cell]) -> QuerySet[Trial]:
    return run.trials.filter(state=Trial.State.DONE, cell__in=list(cells))


def private_scenarios(run: Run, cells: Iterable[Cell]) -> frozenset[str]:
    """Those of private sets, and what is not known here any more; of an imported run what was private there."""
    slugs = {cell.scenario for cell in cells}
    if run.imported:
        return frozenset(slugs & set(run.origin.get("private", ())))
    return frozenset(slug for slug in slugs if is_private(slug))


def _left_out(run: Run, cells: Sequence[Cell], hidden: Sequence[Cell]) -> Iterator[LeftOut]:
    yield LeftOut("keys and secret headers", "masked with equal length before they were stored, and searched for again")
    yield LeftOut("notes, labels of trials, the owner's name, names of workers", "they concern people and one machine")
    if hidden:
        count = run.trials.filter(cell__in=list(hidden)).count()
        slugs = len({cell.scenario for cell in hidden})
        yield LeftOut(f"{slugs} private cases with {count} trials", "private cases stay here unless they are asked for")
    if waiting := run.trials.filter(cell__in=list(cells)).exclude(state=Trial.State.DONE).count():
        yield LeftOut(f"{waiting} trials", "they were not finished")
