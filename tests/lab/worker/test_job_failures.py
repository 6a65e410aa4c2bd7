"""Failures of background jobs, counted by kind without the texts of their exceptions."""

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from tests.factories import make_provider
from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.models import JobFailure
from toolbench.lab.worker.health import get_health
from toolbench.lab.worker.job_failures import count_failure, delete_old_failures, list_recent_failures, record_failures

pytestmark = pytest.mark.django_db(transaction=True)


def test_record_failures_counts_one_kind_in_one_row() -> None:
    provider = make_provider("Somewhere")
    for error in (ValueError("a"), ValueError("b"), KeyError("c")):
        with record_failures("a job", provider.pk):
            raise error
    found = {(row.job, row.provider_name, row.error, row.count) for row in list_recent_failures()}
    assert found == {("a job", "Somewhere", "ValueError", 2), ("a job", "Somewhere", "KeyError", 1)}


def test_record_failures_stores_no_exception_message(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), record_failures("a job"):
        raise ValueError("sk-secret")
    assert "sk-secret" not in str(JobFailure.objects.values().get())
    assert "Background job failed: a job" in caplog.text


def test_count_failure_of_group_stores_first_exception_and_place() -> None:
    error: BaseException = ValueError()
    try:
        resolve_policy([("layer", {"no such key": 1})])
    except Exception as raised:
        error = raised
    count_failure("a job", BaseExceptionGroup("", [BaseExceptionGroup("", [error])]))
    row = JobFailure.objects.get()
    assert (row.error, row.place.startswith("toolbench.engine.policy.")) == ("PolicyError", True)


def test_record_failures_without_database_raises() -> None:
    def job() -> None:
        with record_failures("a job"):
            connection.close()
            raise OperationalError("gone")

    with pytest.raises(OperationalError):
        job()
    assert not JobFailure.objects.exists()


def test_record_failures_counts_error_of_reachable_database() -> None:
    with record_failures("a job"):
        connection.ensure_connection()
        raise OperationalError("deadlock detected")
    assert JobFailure.objects.get().error == "OperationalError"


def test_count_failure_unstorable_failure_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    count_failure("x" * 81, ValueError("a"))
    assert not JobFailure.objects.exists()
    assert "could not be counted" in caplog.text


def test_job_failures_older_than_a_day_are_hidden_and_deleted() -> None:
    count_failure("new", ValueError())
    count_failure("old", ValueError())
    JobFailure.objects.filter(job="old").update(last_at=timezone.now() - timedelta(days=2))
    assert [row.job for row in get_health().failures] == ["new"]
    assert not get_health().is_healthy
    delete_old_failures()
    assert JobFailure.objects.get().job == "new"
