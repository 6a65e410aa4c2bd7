"""Table of the rules by which bodies of old trials are removed."""

from django.db import models


class RetentionRule(models.Model):
    """Rule that the bodies of trials of one kind are removed after some days.

    The bodies of a kind without a row are kept. The bodies of pinned trials are kept, too (see
    lab/operations/sql/due_trials.sql).

    Attributes:
        days: number of days after the end of the trial; after the deletion of a deleted run; after the import of an
            imported run.
    """

    class Kind(models.TextChoices):
        """Kind of trials. A trial is of the first kind, in this order, that fits."""

        DELETED = "deleted", "Trials of deleted runs"
        SIMULATED = "simulated", "Trials of simulated models"
        IMPORTED = "imported", "Trials of imported runs"
        PASSED = "passed", "Passed trials"
        FAILED = "failed", "Failed trials"
        OTHER = "other", "Infrastructure errors, cancelled and not applicable trials"

    kind = models.CharField(max_length=12, choices=Kind, unique=True)
    days = models.PositiveIntegerField()
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.days} days"
