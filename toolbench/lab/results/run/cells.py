"""Configurations, cells and times of one run, read once for a page."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.pools import CELL_FIELDS, CONFIG_FIELDS, CONFIRMATION_PURPOSE, SumRow
from toolbench.lab.metrics.tally import read_sums
from toolbench.lab.metrics.times import Times, load_cell_times
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, RefusedParameter, Run, RunConfig


@dataclass(frozen=True, slots=True)
class RunCells:
    """A run with its configurations and cells.

    Attributes:
        times: the times of each cell, by its id.
        has_refusals: whether an endpoint refused a parameter.
        version: version of the stored sums; while it is the same, the cells are the same. None while cells may change.
    """

    run: Run
    configs: tuple[RunConfig, ...]
    cells: tuple[Cell, ...]
    times: Mapping[int, Times]
    has_refusals: bool = False
    version: UUID | None = None

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios of the first configuration; () without configurations."""
        first = self.configs[0].pk if self.configs else None
        return tuple(cell.scenario for cell in self.cells if cell.config_id == first)

    def list_models(self, config_ids: Collection[int]) -> tuple[str, ...]:
        """Return the names of the models of these configurations, without repeats."""
        return tuple(dict.fromkeys(config.model_name for config in self.configs if config.pk in config_ids))

    def build_sum_rows(self) -> list[SumRow]:
        """Return the sums in the form of `sum_cells`, with one row for each cell, since only this run is summed."""
        config_columns = {config.pk: {name: getattr(config, name) for name in CONFIG_FIELDS} for config in self.configs}
        run_columns = {config.pk: self._build_run_columns(config) for config in self.configs}
        return [
            {
                **config_columns[cell.config_id],
                **run_columns[cell.config_id],
                **{name: getattr(cell, name) for name in CELL_FIELDS},
                **read_sums(cell),
                "all_durations": self.times[cell.pk].durations,
                "all_first_tokens": self.times[cell.pk].first_tokens,
                "cell_ids": [cell.pk],
                "prompts": [cell.prompt_version],
            }
            for cell in self.cells
        ]

    def _build_run_columns(self, config: RunConfig) -> dict[str, Any]:
        """Return the columns of a sum row that all cells of a configuration have in common."""
        run = self.run
        return {
            "simulated": run.simulated,
            "imported": run.imported,
            "confirming": run.purpose == CONFIRMATION_PURPOSE,
            "mixed_upstreams": config.mixed_upstreams,
            "config_ids": [config.pk],
            "run_ids": [run.pk],
            "engines": [run.engine_version],
            "purposes": [run.purpose],
            "canonicals": [config.canonical],
            "first": run.created_at,
            "last": run.created_at,
        }


_cells_and_times: VersionCache[tuple[tuple[Cell, ...], Mapping[int, Times]]] = VersionCache(max_entries=4)


def read_run_cells(run_id: int) -> RunCells:
    """Return a run with its cells, with three to five queries; none reads frozen settings.

    The cells of a run whose sums are pooled are cached until the version of the sums changes.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted.
    """
    refusals = Exists(RefusedParameter.objects.filter(run=OuterRef("pk")))
    runs = Run.objects.select_related("owner").defer("request").annotate(has_refusals=refusals)
    run = runs.get(pk=run_id, deleted_at=None)
    configs = tuple(run.configs.defer("layers", "options", "true_rates"))
    version = find_pool_version(Q(pk=run_id)) if run.pooled else None
    cells, times = _cells_and_times.get(version, run_id, lambda: _read_cells(run))
    return RunCells(run, configs, cells, times, run.has_refusals, version)


def _read_cells(run: Run) -> tuple[tuple[Cell, ...], Mapping[int, Times]]:
    cells = tuple(run.cells.all())  # without `defer`, with which Django takes twice as long to build the cells
    return cells, load_cell_times(cells)
