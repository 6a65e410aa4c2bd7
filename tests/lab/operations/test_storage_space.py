"""The size of a trial and the days until the disk is full."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.factories import make_cell, make_config, make_gateway_trace, make_run, make_step, make_trial
from toolbench.lab.models import GatewayTrace, Run
from toolbench.lab.operations.storage_space import (
    MIN_TRIALS,
    DiskSpace,
    StorageSpace,
    is_database_here,
    measure_disk,
    measure_storage_space,
)

pytestmark = pytest.mark.django_db


def test_measure_storage_space_has_disk_and_groups() -> None:
    make_step(make_trial(make_cell(make_config(make_run(trial_count=1)))), bodies={"request": bytes(range(256)) * 40})
    space = measure_storage_space()
    names = dict(space.groups)
    assert names["Bodies of requests, answers and step details"] > 0
    assert names["Gateway traces"] > 0
    assert space.database_bytes > space.trial_bytes > 0
    assert space.disk is not None
    assert space.disk.total_bytes > space.disk.free_bytes > 0


def test_measure_storage_space_below_min_trials_has_no_size() -> None:
    make_run(trial_count=MIN_TRIALS - 1)
    space = measure_storage_space()
    assert (space.bytes_per_trial, space.bytes_per_day, space.days_left) == (None, None, None)


def test_measure_storage_space_growth_omits_old_and_imported_runs() -> None:
    make_run(trial_count=70)
    make_run(trial_count=1_000, imported=True)
    old = make_run(trial_count=430)
    Run.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=8))
    space = measure_storage_space()
    assert (space.trials, space.recent_trials) == (1_500, 70)
    assert space.bytes_per_trial == space.trial_bytes / 1_500


def test_storage_space_days_left_divides_free_bytes_by_growth() -> None:
    disk = DiskSpace("/data", total_bytes=100_000, free_bytes=50_000)
    space = StorageSpace((), trial_bytes=20_000, trials=200, recent_trials=700, disk=disk)
    assert (space.bytes_per_trial, space.bytes_per_day, space.days_left) == (100.0, 10_000.0, 5.0)
    assert disk.free_share == 0.5


def test_storage_space_days_left_without_growth_or_disk_is_none() -> None:
    disk = DiskSpace("/data", total_bytes=100_000, free_bytes=50_000)
    assert StorageSpace((), 20_000, 200, 0, disk).days_left is None
    assert StorageSpace((), 20_000, 200, 700, None).days_left is None


def test_measure_storage_space_growth_includes_gateway_traces() -> None:
    make_gateway_trace(client_request=bytes(range(256)) * 40)
    space = measure_storage_space()
    assert (space.trials, space.recent_traces) == (0, 1)
    assert space.bytes_per_day is not None
    groups = dict(space.groups)
    assert 0 < space.bytes_per_day <= (groups["Gateway traces"] + groups["Search texts of gateway traces"]) / 7
    assert space.days_left is not None


def test_measure_storage_space_traces_replacing_deleted_ones_add_nothing(settings: LazySettings) -> None:
    settings.TRACE_DAYS = 30
    make_gateway_trace()
    old = make_gateway_trace()
    GatewayTrace.objects.filter(pk=old.pk).update(at=timezone.now() - timedelta(days=25))
    assert measure_storage_space().trace_growth_bytes == 0
    settings.TRACE_DAYS = 0
    assert measure_storage_space().trace_growth_bytes > 0


def test_measure_disk_of_unreadable_folder_is_none() -> None:
    assert measure_disk("/no/such/folder") is None
    assert is_database_here()
