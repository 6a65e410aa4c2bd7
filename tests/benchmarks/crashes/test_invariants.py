"""Invariants of the crash schedules: each is checked on rows that break it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from benchmarks.chaos.invariants import install_end_trigger
from benchmarks.crashes.invariants import find_other_violations, find_trace_violations
from tests.factories import make_cell, make_config, make_gateway_trace, make_model, make_run, make_step, make_trial
from toolbench.lab.models import Probe, ProbeExchange, Run, Schedule, Trial

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def witness() -> None:
    install_end_trigger()


def find_kinds(sent: int = 0) -> set[str]:
    return {violation.kind for violation in find_other_violations(sent)}


def make_ended_trial() -> Trial:
    """A trial with one stored answer of 15 tokens, whose run counts one request and 15 tokens."""
    run = make_run(requests_reserved=1, tokens_used=15)
    trial = make_trial(make_cell(make_config(run)), "running")
    make_step(trial, input_tokens=10, output_tokens=5)
    Trial.objects.filter(pk=trial.pk).update(state="done", outcome="pass", finished_at=timezone.now())
    return trial


def make_schedule() -> Schedule:
    due = timezone.now() + timedelta(days=1)
    return Schedule.objects.create(
        name="Core", every_hours=24, requests_per_run=1, requests_per_month=1, next_due_at=due
    )


def test_find_other_violations_of_valid_run_is_empty() -> None:
    make_ended_trial()
    assert find_kinds(sent=1) == set()


def test_find_other_violations_finds_uncounted_request() -> None:
    make_ended_trial()
    assert find_kinds(sent=2) == {"limit"}


def test_find_other_violations_finds_miscounted_tokens() -> None:
    make_ended_trial()
    Run.objects.update(tokens_used=30)
    assert find_kinds(sent=1) == {"limit"}


def test_find_other_violations_finds_trial_that_ends_twice() -> None:
    trial = make_ended_trial()
    Trial.objects.update(finished_at=timezone.now() + timedelta(1))
    assert find_kinds(sent=1) == {"doubled"}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chaos_end SET execution = execution + 1 WHERE ctid = (SELECT min(ctid) FROM chaos_end)")
    assert find_kinds(sent=1) == {"doubled"}
    Trial.objects.filter(pk=trial.pk).update(errors_retried=1)
    assert find_kinds(sent=1) == set()


def test_find_other_violations_requires_one_run_per_due_time() -> None:
    schedule = make_schedule()
    assert find_kinds() == {"lost"}
    make_run(schedule=schedule)
    assert find_kinds() == set()
    make_run(schedule=schedule)
    assert find_kinds() == {"doubled"}


def test_find_other_violations_requires_result_and_exchanges_of_probe() -> None:
    model = make_model()
    probe = Probe.objects.create(model=model, provider=model.provider, kind="first_use", state="done", ok=True)
    assert find_kinds() == {"lost"}
    ProbeExchange.objects.create(
        probe=probe, execution=0, ordinal=1, check_slug="tools", duration_ms=1, request=b"", response=b""
    )
    assert find_kinds() == set()
    Probe.objects.update(state="queued")
    assert find_kinds() == {"lost"}


def test_find_trace_violations_requires_each_trace_once() -> None:
    make_gateway_trace(alias="first")
    assert find_trace_violations(1) == []
    assert [violation.kind for violation in find_trace_violations(2)] == ["lost"]
    make_gateway_trace(alias="first")
    assert [violation.kind for violation in find_trace_violations(1)] == ["doubled"]
