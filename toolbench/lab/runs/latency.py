"""Latency of one run: raw times per configuration, with quantiles only where there are enough trials."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F

from toolbench.evals.statistics import P95_LEAST, Quantile, quantile
from toolbench.lab.counts.cells import ANSWERED, SATURATED_LAG_MS
from toolbench.lab.counts.groups import CONTROL, usual_first
from toolbench.lab.models import Provider, Run, RunConfig, Trial
from toolbench.lab.runs.runs_to_choose import runs_to_choose

MOST_POINTS = 2_000  # per configuration, so that the page stays light
MOST_RUNS = 50  # to choose from

METRICS = {
    "trial": ("Trial, without queue", F("duration_ms")),
    "working": ("Trial, without queue and back-off", F("duration_ms") - F("backoff_ms")),
    "first_byte": ("First byte of the first answer", F("first_byte_ms")),
    "first_token": ("First token of the first answer, streamed only", F("first_token_ms")),
    "first_call": ("First complete call, streamed only", F("first_call_ms")),
    "model": ("Time with the model", F("model_ms")),
    "tool": ("Time in tools", F("tool_ms")),
}


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """`times` are milliseconds in the order they ran, at most MOST_POINTS of `n`; `p95` from P95_LEAST on."""

    config_id: int
    label: str
    provider: str
    local: bool
    n: int
    times: tuple[float, ...]
    p50: Quantile
    p95: Quantile | None
    saturated: int


@dataclass(frozen=True, slots=True)
class LatencyPage:
    run: Run | None
    runs: tuple[Run, ...]
    metric: str
    metric_title: str
    group: str
    groups: tuple[str, ...]
    rows: tuple[LatencyRow, ...]


def get_latency(run_id: int | None = None, metric: str = "trial", group: str = "") -> LatencyPage:
    """The run asked for, else the newest that is neither simulated nor imported; of its groups of scenarios the one
    asked for, else the usual one. Only trials with an answer count."""
    metric = metric if metric in METRICS else "trial"
    kept = Run.objects.filter(deleted_at=None).defer("request", "skipped")
    run = kept.filter(pk=run_id).first() if run_id else kept.filter(simulated=False, imported=False).first()
    runs = runs_to_choose(kept, [run.pk] if run else (), newest=MOST_RUNS)
    groups = _groups(run) if run else ()
    group = group if group in groups else "".join(groups[:1])
    rows = tuple(_rows(run, metric, group)) if run else ()
    return LatencyPage(run, runs, metric, METRICS[metric][0], group, groups, rows)


def _groups(run: Run) -> tuple[str, ...]:
    """The usual one first, controls last."""
    named = run.cells.order_by().values_list("scenario_group", flat=True).distinct()
    return tuple(sorted(named, key=lambda name: (name == CONTROL, usual_first(name))))


def _rows(run: Run, metric: str, group: str) -> Iterable[LatencyRow]:
    answered = Trial.objects.filter(ANSWERED, run=run, cell__scenario_group=group)
    found = answered.annotate(time=METRICS[metric][1]).exclude(time=None).order_by("position")
    times: dict[int, list[float]] = defaultdict(list)
    for config_id, time in found.values_list("config_id", "time"):
        times[config_id].append(time)
    lagging = Counter(answered.filter(client_lag_ms__gt=SATURATED_LAG_MS).values_list("config_id", flat=True))
    for config in RunConfig.objects.filter(pk__in=times).order_by("position"):
        yield _row(config, times[config.pk], lagging[config.pk])


def _row(config: RunConfig, times: list[float], saturated: int) -> LatencyRow:
    return LatencyRow(
        config_id=config.pk,
        label=" · ".join(filter(None, _label(config))),
        provider=config.provider_name,
        local=config.provider_kind == Provider.Kind.LOCAL,
        n=len(times),
        times=tuple(times[:MOST_POINTS]),
        p50=quantile(times, 0.5),
        p95=quantile(times, 0.95) if len(times) >= P95_LEAST else None,
        saturated=saturated,
    )


def _label(config: RunConfig) -> tuple[str, ...]:
    streamed = "streamed" if config.stream else ""
    named = (config.provider_name, config.model_name, config.profile)
    return *named, config.strategy, config.method, config.examples, streamed
