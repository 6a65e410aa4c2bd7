"""Failures of background jobs; /health/ shows those of the last day."""

from django.db import models


class JobFailure(models.Model):
    """One kind of failure of one background job, with its number of occurrences.

    The message of the exception is not stored, since it may quote a secret; the process's log has the traceback. The
    row is deleted after a day without another failure of its kind.
    """

    job = models.CharField(max_length=80)  # named as in the tables of jobs: lab/shifts, lab/schedule.py, lab/tasks.py
    provider_name = models.CharField(max_length=80, blank=True)  # blank: not a job of one provider
    error = models.CharField(max_length=80)  # class of the exception
    place = models.CharField(max_length=200, blank=True)  # innermost function of Toolbench, of the last failure
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_at"]
        constraints = [
            models.UniqueConstraint(fields=["job", "provider_name", "error"], name="one_row_per_job_failure")
        ]

    def __str__(self) -> str:
        return f"{self.job}: {self.error}"
