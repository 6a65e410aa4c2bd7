"""Failures of background jobs, which are logged, counted in the database and shown on /health/."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now

from toolbench.engine.events import EndReason
from toolbench.engine.types import JsonObject
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.models import JobFailure
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS

logger = logging.getLogger(__name__)

SESSION_JOB = "a worker session"
INTERNAL_ERROR = "our_error"  # stored failure class and cause
FAILURE_RETENTION = timedelta(days=1)  # how long /health/ shows a failure after its last occurrence

_COUNT_FAILURE = load_statement("worker/count_failure")


def describe_internal_error(error: Exception) -> str:
    """Return the sentence for users about an internal error, with the class name of the exception."""
    return f"Toolbench itself failed ({type(error).__name__}). See the worker's log for details."


def build_internal_error_columns(sentence: str) -> JsonObject:
    """Return the columns of a trial that ends with an internal error, with `sentence` as its explanation."""
    return {
        "outcome": "infra",
        "end": EndReason.PROVIDER_ERROR.value,
        "failure_class": INTERNAL_ERROR,
        "category": "EXCEPTION",
        "sentence": sentence,
        "signature": INTERNAL_ERROR,
        "cause": INTERNAL_ERROR,
        "taxonomy": read_taxonomy_version(),
    }


@contextmanager
def record_failures(job: str, provider_id: int | None = None) -> Iterator[None]:
    """Log and count an exception of the block instead of raising it. Do not use it inside a transaction.

    Raises:
        django.db.Error: the exception of the block, neither logged nor counted, if the database cannot be reached.
    """
    try:
        yield
    except UNAVAILABLE_ERRORS as error:
        if not connection.is_usable():
            raise
        count_failure(job, error, provider_id)
    except Exception as error:
        count_failure(job, error, provider_id)


def count_failure(job: str, error: BaseException, provider_id: int | None = None) -> None:
    """Log an exception and count it. Never raises: if the exception cannot be counted, a warning is logged.

    Args:
        job: name of the job, as /health/ shows it.
        error: the exception; of an exception group, the first exception that is not a group is counted.
        provider_id: the provider whose trials the job runs; None for other jobs.
    """
    logger.error("Background job failed: %s", job, exc_info=error)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    row = {
        "job": job,
        "provider": provider_id,
        "error": type(error).__name__[:80],
        "place": _find_failing_function(error),
    }
    try:
        with connection.cursor() as cursor:
            cursor.execute(_COUNT_FAILURE, row)
    except Exception as storage_error:
        logger.warning("The failure could not be counted: %s", type(storage_error).__name__)


def list_recent_failures() -> tuple[JobFailure, ...]:
    """Return the failures that occurred in the last day, the newest first, with one query."""
    return tuple(JobFailure.objects.filter(last_at__gt=Now() - FAILURE_RETENTION))


def delete_old_failures() -> None:
    """Delete failures that have not occurred for a day."""
    JobFailure.objects.filter(last_at__lte=Now() - FAILURE_RETENTION).delete()


def _find_failing_function(error: BaseException) -> str:
    """Return the innermost function of Toolbench in the traceback of the exception; "" if there is none."""
    function_name, trace = "", error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("toolbench."):
            function_name = f"{module}.{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return function_name[-200:]
