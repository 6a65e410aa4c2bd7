"""The list of runs with their sums."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db.models import Case, Q, Value, When

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.tally import Tally, add_tallies, build_aggregates, build_tally
from toolbench.lab.metrics.times import QuantileRange, Times, build_quantile_range, build_time_aggregates, build_times
from toolbench.lab.models import Cell, Provider, Run, RunConfig

Kind = Literal["own", "simulated", "imported"]
_KIND_FILTERS: Mapping[Kind, Q] = {
    "own": Q(imported=False, simulated=False),
    "simulated": Q(imported=False, simulated=True),
    "imported": Q(imported=True),  # simulated or not
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the list.

    Attributes:
        answered: None for a run of several configurations or scenario groups, whose sum has no meaning.
        delivered: None as for `answered`.
        p50: times of tool scenarios without local models; None where there are none.
        p95: as `p50`.
    """

    run: Run
    models: tuple[str, ...]
    tally: Tally
    answered: Rate | None
    delivered: Rate | None
    p50: QuantileRange | None
    p95: QuantileRange | None


def get_runs(kind: Kind, limit: int = 100) -> tuple[RunRow, ...]:
    """Return the newest runs of one kind with their sums over all cells, with four queries."""
    found = Run.objects.filter(_KIND_FILTERS[kind], deleted_at=None)
    runs = tuple(found.defer("request", "skipped")[:limit])
    counts: dict[int, dict[str, Tally]] = defaultdict(dict)
    group = Case(When(control=True, then=Value(CONTROL_GROUP)), default="scenario_group")
    grouped = Cell.objects.filter(run__in=runs).order_by().annotate(group=group).values("run_id", "group")
    for line in grouped.annotate(**build_aggregates()):
        counts[line["run_id"]][line["group"]] = build_tally(line)
    models: dict[int, list[str]] = defaultdict(list)
    configs = RunConfig.objects.filter(run__in=runs).order_by("run_id", "position")
    for run_id, name in configs.values_list("run_id", "model_name"):
        models[run_id].append(name)
    times = _read_times(runs)
    return tuple(_build_row(run, models[run.pk], counts[run.pk], times[run.pk]) for run in runs)


def _read_times(runs: Iterable[Run]) -> dict[int, list[Times]]:
    """Return the times of each run by configuration and group of scenarios."""
    tools = Cell.objects.filter(run__in=runs, control=False).exclude(config__provider_kind=Provider.Kind.LOCAL)
    found: dict[int, list[Times]] = defaultdict(list)
    for line in (
        tools.order_by()
        .values("run_id", "config_id", "scenario_group")
        .annotate(**build_time_aggregates(first_tokens=False))
    ):
        found[line["run_id"]].append(build_times(line))
    return found


def _build_row(run: Run, models: list[str], counts: dict[str, Tally], times: list[Times]) -> RunRow:
    """Return the row of a run.

    Args:
        run: the run.
        models: the models of its configurations.
        counts: counts by scenario group, with the controls as one group.
        times: times by configuration and group.
    """
    groups = [figures for name, figures in counts.items() if name != CONTROL_GROUP]
    whole = add_tallies(counts.values())
    alone = len(models) == 1 and len(groups) <= 1
    tools = add_tallies(groups)
    answered, delivered = (tools.answered_success(), tools.delivered()) if alone else (None, None)
    p50, p95 = (build_quantile_range(getattr(time_row, name) for time_row in times) for name in ("p50", "p95"))
    return RunRow(run, tuple(dict.fromkeys(models)), whole, answered, delivered, p50, p95)
