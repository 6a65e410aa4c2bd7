"""Table of failures of background jobs; /health/ shows those of the last day."""

from django.db import models


class JobFailure(models.Model):
    """One kind of failure of one background job, with its number of occurrences.

    The message of the exception is not stored, since it may quote a secret; the log of the process has the traceback.
    The sweep deletes the row when the failure has not occurred for a day.
    """

    job = models.CharField(max_length=80)  # name on /health/, such as "a worker session"
    provider_name = models.CharField(max_length=80, blank=True)  # "": the job is not about one provider
    error = models.CharField(max_length=80)  # class of the exception
    place = models.CharField(max_length=200, blank=True)  # innermost function of Toolbench in the newest traceback
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
