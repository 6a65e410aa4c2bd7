"""The list of runs with their sums."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db.models import Case, Q, QuerySet, Value, When

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.tally import Tally, add_tallies, build_aggregates, build_tally
from toolbench.lab.metrics.times import QuantileRange, Times, build_quantile_range, build_time_aggregates, build_times
from toolbench.lab.models import Cell, Provider, Run, RunConfig
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, clean_text

PAGE_SIZE = 50
DEFAULT_TARGET_PERCENT = 90
MAX_LABELS = 50  # labels that the list offers
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
        tools: as `tally`, without the controls.
        answered: None for a run of several configurations or scenario groups, whose sum has no meaning.
        delivered: None as for `answered`.
        p50: times of tool scenarios without local models; None where there are none.
        p95: as `p50`.
    """

    run: Run
    models: tuple[str, ...]
    tally: Tally
    tools: Tally
    answered: Rate | None
    delivered: Rate | None
    p50: QuantileRange | None
    p95: QuantileRange | None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens; None where the sums of a cell are unknown."""
        return None if self.tally.set_aside else self.tally.input_tokens + self.tally.output_tokens


@dataclass(frozen=True, slots=True)
class RunList:
    """A page of the list of runs, newest first.

    Attributes:
        total: runs on all pages.
        label: only runs with this label; "" for all.
        labels: the labels that runs of this kind have.
        newer: number of the page before; None on the first.
        older: number of the page after; None on the last.
    """

    rows: tuple[RunRow, ...]
    total: int
    label: str
    labels: tuple[str, ...]
    newer: int | None
    older: int | None


def get_run_list(kind: Kind, *, label: str = "", page: int = 1) -> RunList:
    """Return a page of the runs of one kind with their sums, with six queries; a page too far is the last one."""
    label = clean_text(label, MAX_VALUE_CHARACTERS)
    kept = Run.objects.filter(_KIND_FILTERS[kind], deleted_at=None)
    found = kept.filter(label=label) if label else kept
    total = found.count()
    number = min(max(page, 1), max(1, -(-total // PAGE_SIZE)))
    start = (number - 1) * PAGE_SIZE
    labels = kept.exclude(label="").order_by("label").values_list("label", flat=True).distinct()[:MAX_LABELS]
    return RunList(
        rows=_build_rows(found[start : start + PAGE_SIZE]),
        total=total,
        label=label,
        labels=tuple(labels),
        newer=number - 1 if number > 1 else None,
        older=number + 1 if start + PAGE_SIZE < total else None,
    )


def get_runs(kind: Kind, limit: int = 100, *, without: Collection[str] = ()) -> tuple[RunRow, ...]:
    """Return the newest runs of one kind with their sums over all cells, with four queries.

    Runs with a purpose in `without` are left out.
    """
    found = Run.objects.filter(_KIND_FILTERS[kind], deleted_at=None).exclude(purpose__in=without)
    return _build_rows(found[:limit])


def list_runs_before(
    kind: Kind | None, *, label: str = "", before: int | None = None, limit: int
) -> tuple[RunRow, ...]:
    """Return the newest runs of one kind, or of all, with their sums, with four queries.

    Args:
        kind: None for all kinds.
        label: only runs with this label; "" for all.
        before: only runs with a smaller primary key.
        limit: the most runs to return.
    """
    found = Run.objects.filter(_KIND_FILTERS[kind] if kind else Q(), deleted_at=None).select_related("owner")
    if label:
        found = found.filter(label=label)
    if before is not None:
        found = found.filter(pk__lt=before)
    return _build_rows(found[:limit])


def _build_rows(found: QuerySet[Run]) -> tuple[RunRow, ...]:
    runs = tuple(found.defer("request", "skipped"))
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
    answered, delivered = (tools.answered_success(DEFAULT_TARGET_PERCENT), tools.delivered()) if alone else (None, None)
    p50, p95 = (build_quantile_range(getattr(time_row, name) for time_row in times) for name in ("p50", "p95"))
    return RunRow(run, tuple(dict.fromkeys(models)), whole, tools, answered, delivered, p50, p95)
