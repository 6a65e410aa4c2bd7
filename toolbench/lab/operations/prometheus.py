"""Metrics of an installation in the text format of Prometheus, read from database and disks at each scrape.

No process counts anything itself: several processes on any number of hosts do the work, and the database has the
results of all of them.
"""

import shutil
from collections import Counter
from collections.abc import Iterator

from django.conf import settings
from django.db import connection
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from toolbench.lab.operations.health_page import HealthPage, get_health_page
from toolbench.lab.sql import load_statement

CONTENT_TYPE: str = CONTENT_TYPE_PLAIN_0_0_4
_COUNT_WORK = load_statement("operations/count_work")


def render_metrics() -> bytes:
    """Return all metrics as UTF-8 text."""
    collectors = CollectorRegistry()
    collectors.register(InstallationCollector())
    text: bytes = generate_latest(collectors)
    return text


class InstallationCollector:
    """Collector that reads all metrics at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        page = get_health_page()
        yield from _build_process_metrics(page)
        yield from _build_space_metrics(page)
        yield from _build_work_metrics()
        problems = GaugeMetricFamily(
            "toolbench_problems",
            "Problems by code, as on /health/; without missing workers, failed jobs and uncomputed cells",
            labels=["code"],
        )
        for code, count in sorted(Counter(problem.code for problem in page.problems).items()):
            problems.add_metric([code], count)
        yield problems
        yield _build_gauge("toolbench_healthy", "1 if nothing is wrong, else 0", page.is_healthy)
        yield _build_gauge("toolbench_cells_set_aside", "Cells that cannot be computed", page.health.uncomputed_count)


def _build_process_metrics(page: HealthPage) -> Iterator[Metric]:
    heartbeat_age = GaugeMetricFamily(
        "toolbench_heartbeat_age_seconds", "Time since the last heartbeat", labels=["kind", "process"]
    )
    lag = GaugeMetricFamily(
        "toolbench_event_loop_lag_seconds", "Largest event-loop lag between two heartbeats", labels=["kind", "process"]
    )
    clock_offset = GaugeMetricFamily(
        "toolbench_clock_offset_seconds", "How far a clock is ahead of the database's", labels=["kind", "process"]
    )
    alive = GaugeMetricFamily(
        "toolbench_processes_alive", "Processes with a heartbeat in the last minute", labels=["kind"]
    )
    for process in page.health.processes:
        labels = [process.kind, process.name]
        heartbeat_age.add_metric(labels, process.silent_seconds)
        lag.add_metric(labels, process.lag_ms / 1000)
        clock_offset.add_metric(labels, process.clock_offset_ms / 1000)
    for kind in ("scheduler", "worker"):
        alive.add_metric([kind], sum(process.is_alive for process in page.health.processes if process.kind == kind))
    failures = GaugeMetricFamily(
        "toolbench_job_failures", "Failures of background jobs that occurred in the last day", labels=["job", "error"]
    )
    for (job, error), count in _sum_failures(page).items():
        failures.add_metric([job, error], count)
    yield from (alive, heartbeat_age, lag, clock_offset, failures)


def _sum_failures(page: HealthPage) -> Counter[tuple[str, str]]:
    """Return the failures by job and error, over all providers."""
    sums: Counter[tuple[str, str]] = Counter()
    for failure in page.health.failures:
        sums[failure.job, failure.error] += failure.count
    return sums


def _build_space_metrics(page: HealthPage) -> Iterator[Metric]:
    space = page.space
    yield _build_gauge("toolbench_database_bytes", "Bytes of the database", space.database_bytes)
    yield _build_gauge("toolbench_stored_trials", "Stored trials, those of deleted runs included", space.trials)
    if space.bytes_per_trial is not None:
        yield _build_gauge("toolbench_trial_bytes", "Average bytes of a stored trial", space.bytes_per_trial)
    if space.disk is not None:
        yield _build_gauge("toolbench_disk_free_bytes", "Free bytes on the disk of the database", space.disk.free_bytes)
        yield _build_gauge("toolbench_disk_total_bytes", "Bytes of the disk of the database", space.disk.total_bytes)
    if space.days_left is not None:
        yield _build_gauge("toolbench_disk_days_left", "Days until the disk of the database is full", space.days_left)
    free_bytes = shutil.disk_usage(settings.VAR_DIR).free
    yield _build_gauge("toolbench_var_free_bytes", "Free bytes on the disk of the data folder", free_bytes)


def _build_work_metrics() -> Iterator[Metric]:
    """Yield counts of runs, trials, stale cells and waiting jobs, and the longest wait at each provider."""
    families = {
        "runs": GaugeMetricFamily("toolbench_runs", "Runs by state", labels=["state"]),
        "open_trials": GaugeMetricFamily("toolbench_open_trials", "Trials that have not ended", labels=["state"]),
        "ended_trials": GaugeMetricFamily(
            "toolbench_ended_trials",
            "Ended trials of runs that are neither imported nor deleted",
            labels=["outcome", "simulated"],
        ),
        "in_flight": GaugeMetricFamily("toolbench_trials_in_flight", "Running trials by provider", labels=["provider"]),
        "stale_cells": GaugeMetricFamily("toolbench_cells_stale", "Cells that have to be recomputed"),
        "queue_age": GaugeMetricFamily(
            "toolbench_queue_age_seconds",
            "Longest time that the next trial of a running run has waited, by provider",
            labels=["provider"],
        ),
        "jobs": GaugeMetricFamily("toolbench_jobs_waiting", "Replays, re-judgings and imports that wait"),
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_WORK)
        for family, labels, value in cursor.fetchall():
            families[family].add_metric(labels, value)
    yield from families.values()


def _build_gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=float(value))
