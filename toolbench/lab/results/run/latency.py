"""The latency page of one run: times per configuration, with quantiles over all and by scenario."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F

from toolbench.evals.statistics import Quantile, compute_quantile
from toolbench.lab.metrics.cells import SATURATED_LAG_MS
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP, build_group_sort_key
from toolbench.lab.models import Provider, Run, RunConfig, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.run_choices import list_run_choices

MAX_POINTS = 2_000  # per configuration, so that the page stays light
MAX_RUNS = 50  # to choose from

TIME_METRICS = {
    "trial": ("Trial, without queue", F("duration_ms")),
    "working": ("Trial, without queue and back-off", F("duration_ms") - F("backoff_ms")),
    "first_byte": ("First byte of the first answer", F("first_byte_ms")),
    "first_token": ("First token of the first answer, streamed only", F("first_token_ms")),
    "first_call": ("First complete call, streamed only", F("first_call_ms")),
    "model": ("Time with the model", F("model_ms")),
    "tool": ("Time in tools", F("tool_ms")),
}


@dataclass(frozen=True, slots=True)
class ScenarioTimes:
    """Quantiles of one scenario of a row."""

    scenario: str
    p50: Quantile
    p95: Quantile
    p99: Quantile


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Times of one configuration.

    Attributes:
        n: number of measured times.
        times: milliseconds in the order of the trials, at most MAX_POINTS of `n`.
        saturated: number of trials measured while this machine was saturated.
        scenarios: empty if the row has only one scenario.
    """

    config_id: int
    label: str
    provider: str
    local: bool
    n: int
    times: tuple[float, ...]
    p50: Quantile
    p95: Quantile
    p99: Quantile
    saturated: int
    scenarios: tuple[ScenarioTimes, ...]


@dataclass(frozen=True, slots=True)
class LatencyPage:
    """Everything that the latency page shows.

    Attributes:
        run: None if there is no such run.
        runs: the runs to choose from.
    """

    run: Run | None
    runs: tuple[Run, ...]
    metric: str
    metric_title: str
    group: str
    groups: tuple[str, ...]
    rows: tuple[LatencyRow, ...]


def get_latency(run_id: int | None = None, metric: str = "trial", group: str = "") -> LatencyPage:
    """Return the latency page. Only trials with an answer count.

    Args:
        run_id: None for the newest run that is neither simulated nor imported.
        metric: a key of TIME_METRICS; any other value means "trial".
        group: a scenario group of the run; any other value means the default group.
    """
    metric = metric if metric in TIME_METRICS else "trial"
    kept = Run.objects.filter(deleted_at=None).defer("request", "skipped")
    run = kept.filter(pk=run_id).first() if run_id else kept.filter(simulated=False, imported=False).first()
    runs = list_run_choices(kept, [run.pk] if run else (), newest=MAX_RUNS)
    groups = _list_groups(run) if run else ()
    group = group if group in groups else "".join(groups[:1])
    rows = tuple(_build_rows(run, metric, group)) if run else ()
    return LatencyPage(run, runs, metric, TIME_METRICS[metric][0], group, groups, rows)


def _list_groups(run: Run) -> tuple[str, ...]:
    """Return the scenario groups, the default first and controls last."""
    named = run.cells.order_by().values_list("scenario_group", flat=True).distinct()
    return tuple(sorted(named, key=lambda name: (name == CONTROL_GROUP, build_group_sort_key(name))))


def _build_rows(run: Run, metric: str, group: str) -> Iterable[LatencyRow]:
    answered = Trial.objects.filter(ANSWERED, run=run, cell__scenario_group=group)
    found = answered.annotate(time=TIME_METRICS[metric][1]).exclude(time=None).order_by("position")
    times: dict[int, list[tuple[str, float]]] = defaultdict(list)
    for config_id, scenario, time in found.values_list("config_id", "scenario", "time"):
        times[config_id].append((scenario, time))
    lagging = Counter(answered.filter(client_lag_ms__gt=SATURATED_LAG_MS).values_list("config_id", flat=True))
    for config in RunConfig.objects.filter(pk__in=times).order_by("position"):
        yield _build_row(config, times[config.pk], lagging[config.pk])


def _build_row(config: RunConfig, timed: list[tuple[str, float]], saturated: int) -> LatencyRow:
    times = [time for _, time in timed]
    return LatencyRow(
        config_id=config.pk,
        label=" · ".join(filter(None, _list_label_parts(config))),
        provider=config.provider_name,
        local=config.provider_kind == Provider.Kind.LOCAL,
        n=len(times),
        times=tuple(times[:MAX_POINTS]),
        p50=compute_quantile(times, 0.5),
        p95=compute_quantile(times, 0.95),
        p99=compute_quantile(times, 0.99),
        saturated=saturated,
        scenarios=tuple(_build_scenario_times(timed)),
    )


def _build_scenario_times(timed: list[tuple[str, float]]) -> Iterable[ScenarioTimes]:
    found: dict[str, list[float]] = defaultdict(list)
    for scenario, time in timed:
        found[scenario].append(time)
    if len(found) < 2:
        return
    for scenario in sorted(found):
        p50, p95, p99 = (compute_quantile(found[scenario], q) for q in (0.5, 0.95, 0.99))
        yield ScenarioTimes(scenario, p50, p95, p99)


def _list_label_parts(config: RunConfig) -> tuple[str, ...]:
    streamed = "streamed" if config.stream else ""
    named = (config.provider_name, config.model_name, config.profile)
    return *named, config.strategy, config.method, config.examples, streamed
