"""Metrics for Prometheus: read from rows, in the text format that its own parser reads."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.installation import ROOT
from toolbench.lab.models import Process, Run
from toolbench.lab.operations.prometheus import render_metrics
from toolbench.lab.worker.health import record_heartbeat
from toolbench.lab.worker.job_failures import count_failure

pytestmark = pytest.mark.django_db


def read_samples() -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values."""
    families = text_string_to_metric_families(render_metrics().decode())
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def test_render_metrics_of_new_installation_has_space_and_no_trials() -> None:
    samples = read_samples()
    assert samples["toolbench_database_bytes",] > 1_000_000
    assert samples["toolbench_stored_trials",] == 0
    assert samples["toolbench_processes_alive", "worker"] == 0
    assert samples["toolbench_healthy",] == 0
    assert samples["toolbench_disk_free_bytes",] > 0
    assert ("toolbench_trial_bytes",) not in samples


def test_render_metrics_names_are_documented() -> None:
    families = text_string_to_metric_families(render_metrics().decode())
    documented = set(re.findall(r"`(toolbench_\w+)", (ROOT / "docs/operations.md").read_text()))
    assert {family.name for family in families} - documented == set()


def test_render_metrics_counts_trials_by_state_and_outcome() -> None:
    done = make_run(trial_count=4)
    make_trials(make_cell(make_config(done)), **{"pass": 2, "fail": 1, "infra": 1})
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 1})
    make_trials(make_cell(make_config(make_run(imported=True))), **{"pass": 5})
    make_trials(make_cell(make_config(make_run(deleted_at=timezone.now()))), queued=5)
    running_run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(running_run)), queued=3, running=2)
    samples = read_samples()
    assert samples["toolbench_ended_trials", "pass", "0"] == 2
    assert samples["toolbench_ended_trials", "infra", "0"] == 1
    assert samples["toolbench_ended_trials", "pass", "1"] == 1
    assert samples["toolbench_open_trials", "queued"] == 3
    assert samples["toolbench_trials_in_flight", "Example"] == 2
    assert samples["toolbench_queue_age_seconds", "Example"] >= 0
    assert samples["toolbench_runs", "running"] == 1


def test_render_metrics_labels_processes_problems_and_failures() -> None:
    record_heartbeat("scheduler")
    seen_at = timezone.now() - timedelta(minutes=10)
    Process.objects.create(name="worker@h:1", kind="worker", host="h", pid=1, seen_at=seen_at, clock_offset_ms=-61_000)
    count_failure("sweeping", ValueError("x"))
    count_failure("sweeping", ValueError("x"))
    samples = read_samples()
    assert samples["toolbench_problems", "silent"] == 1
    assert samples["toolbench_processes_alive", "scheduler"] == 1
    assert 590 < samples["toolbench_heartbeat_age_seconds", "worker", "worker@h:1"] < 700
    assert samples["toolbench_clock_offset_seconds", "worker", "worker@h:1"] == -61
    assert samples["toolbench_job_failures", "ValueError", "sweeping"] == 2
