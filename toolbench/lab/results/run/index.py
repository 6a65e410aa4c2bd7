"""List of runs with their counts, rates and times."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, OuterRef, Q, QuerySet, Value, When

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.tally import Tally, add_tallies, build_aggregates, build_tally
from toolbench.lab.metrics.times import QuantileRange, Times, build_time_aggregates, build_times, find_quantile_range
from toolbench.lab.models import Cell, Provider, Run, RunConfig
from toolbench.lab.query_params import MAX_VALUE_CHARACTERS, clean_text

PAGE_SIZE = 50
DEFAULT_TARGET_PERCENT = 90
MAX_LABELS = 50  # labels that the list offers
Kind = Literal["own", "simulated", "imported"]
_KIND_FILTERS: Mapping[Kind, Q] = {
    "own": Run.COUNTED & Q(imported=False, simulated=False),
    "simulated": Run.COUNTED & Q(imported=False, simulated=True),
    "imported": Q(imported=True),  # also imported runs of simulated models
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """Run of the list.

    Attributes:
        models: names of its models, each once.
        config_count: number of its configurations.
        tally: counts of all scenarios.
        tools: counts of the scenarios that are not controls.
        answered: answered success in tool scenarios; None for a run of several configurations or groups of tool
            scenarios, since a rate over all of them would have no meaning.
        delivered: end-to-end success in tool scenarios; None for the same runs.
        p50: smallest and largest median of duration among the configurations and their groups of tool scenarios. Local
            models are left out. None without times, or if they were not read.
        p95: as `p50`, for the 95th percentiles of duration.
    """

    run: Run
    models: tuple[str, ...]
    config_count: int
    tally: Tally
    tools: Tally
    answered: Rate | None
    delivered: Rate | None
    p50: QuantileRange | None
    p95: QuantileRange | None

    @property
    def tokens(self) -> int | None:
        """Return the number of input and output tokens; None if the sums of a cell are unknown."""
        return None if self.tally.uncomputed_cells else self.tally.input_tokens + self.tally.output_tokens


@dataclass(frozen=True, slots=True)
class RunList:
    """Page of the list of runs, newest first.

    Attributes:
        total: number of runs on all pages.
        label: label of the listed runs; "" for all runs.
        labels: labels of runs of this kind, at most MAX_LABELS.
        previous_page: number of the page with newer runs; None on the first page.
        next_page: number of the page with older runs; None on the last page.
    """

    rows: tuple[RunRow, ...]
    total: int
    label: str
    labels: tuple[str, ...]
    previous_page: int | None
    next_page: int | None


def get_run_list(kind: Kind, *, label: str = "", page: int = 1) -> RunList:
    """Return a page of the runs of a kind, with five queries.

    Args:
        kind: kind of the runs.
        label: label of the runs; "" for all.
        page: number of the page, from 1; a greater number than that of the last page stands for the last page.
    """
    label = clean_text(label, MAX_VALUE_CHARACTERS)
    runs_of_kind = Run.objects.filter(_KIND_FILTERS[kind], deleted_at=None)
    runs = runs_of_kind.filter(label=label) if label else runs_of_kind
    total = runs.count()
    number = min(max(page, 1), max(1, -(-total // PAGE_SIZE)))
    start = (number - 1) * PAGE_SIZE
    labels = runs_of_kind.exclude(label="").order_by("label").values_list("label", flat=True).distinct()
    return RunList(
        rows=_build_rows(runs[start : start + PAGE_SIZE]),
        total=total,
        label=label,
        labels=tuple(labels[:MAX_LABELS]),
        previous_page=number - 1 if number > 1 else None,
        next_page=number + 1 if start + PAGE_SIZE < total else None,
    )


def get_runs(kind: Kind, limit: int = 100, *, excluded_purposes: Collection[str] = ()) -> tuple[RunRow, ...]:
    """Return the newest runs of a kind, with three queries.

    Args:
        kind: kind of the runs.
        limit: maximum number of runs.
        excluded_purposes: values of `Run.purpose` whose runs are left out.
    """
    runs = Run.objects.filter(_KIND_FILTERS[kind], deleted_at=None).exclude(purpose__in=excluded_purposes)
    return _build_rows(runs[:limit])


def list_runs_before(
    kind: Kind | None, *, label: str = "", before: int | None = None, limit: int
) -> tuple[RunRow, ...]:
    """Return the newest runs without their times, with two queries.

    Args:
        kind: kind of the runs; None for all runs, those of the playground included.
        label: label of the runs; "" for all.
        before: only runs with a smaller primary key are returned; None for the newest runs.
        limit: maximum number of runs.
    """
    runs = Run.objects.filter(_KIND_FILTERS[kind] if kind else Q(), deleted_at=None).select_related("owner")
    if label:
        runs = runs.filter(label=label)
    if before is not None:
        runs = runs.filter(pk__lt=before)
    return _build_rows(runs[:limit], unused_columns=(), needs_times=False)


def _build_rows(
    query: QuerySet[Run], *, unused_columns: Sequence[str] = ("skipped",), needs_times: bool = True
) -> tuple[RunRow, ...]:
    """Return the rows of runs, with two queries, and one more for their times.

    Args:
        query: the runs.
        unused_columns: columns that are not read, besides `request`, since the caller does not use them.
        needs_times: whether the caller uses times; reading them takes more than half of the function's time.
    """
    model_names = RunConfig.objects.filter(run=OuterRef("pk")).order_by("position").values("model_name")
    runs = tuple(query.defer("request", *unused_columns).annotate(config_models=ArraySubquery(model_names)))
    counts: dict[int, dict[str, Tally]] = defaultdict(dict)
    group = Case(When(control=True, then=Value(CONTROL_GROUP)), default="scenario_group")
    grouped = Cell.objects.filter(run__in=runs).order_by().annotate(group=group).values("run_id", "group")
    for sums in grouped.annotate(**build_aggregates()):
        counts[sums["run_id"]][sums["group"]] = build_tally(sums)
    times = _read_times(runs) if needs_times else {}
    return tuple(_build_row(run, run.config_models, counts[run.pk], times.get(run.pk, [])) for run in runs)


def _read_times(runs: Iterable[Run]) -> dict[int, list[Times]]:
    """Return the times in tool scenarios by id of the run, one `Times` for each configuration and scenario group.

    Configurations of local models are left out.
    """
    # The condition on config__run changes no result. It keeps PostgreSQL from reading all configurations and times.
    tools = Cell.objects.filter(run__in=runs, config__run__in=runs, control=False)
    tools = tools.exclude(config__provider_kind=Provider.Kind.LOCAL)
    times: dict[int, list[Times]] = defaultdict(list)
    grouped = tools.order_by().values("run_id", "config_id", "scenario_group")
    for sums in grouped.annotate(**build_time_aggregates(first_tokens=False)):
        times[sums["run_id"]].append(build_times(sums))
    return times


def _build_row(run: Run, models: list[str], counts: dict[str, Tally], times: list[Times]) -> RunRow:
    """Return the row of a run.

    Args:
        run: the run.
        models: name of the model of each configuration.
        counts: counts by scenario group, with the controls as one group.
        times: times of each configuration in each group.
    """
    tool_counts = [tally for name, tally in counts.items() if name != CONTROL_GROUP]
    all_counts = add_tallies(counts.values())
    has_rate = len(models) == 1 and len(tool_counts) <= 1
    tools = add_tallies(tool_counts)
    answered = tools.compute_answered_success(DEFAULT_TARGET_PERCENT) if has_rate else None
    delivered = tools.compute_end_to_end_success() if has_rate else None
    p50, p95 = (find_quantile_range(times, q) for q in (0.5, 0.95))
    return RunRow(run, tuple(dict.fromkeys(models)), len(models), all_counts, tools, answered, delivered, p50, p95)
