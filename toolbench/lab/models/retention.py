"""Table of the rules by which bodies of old trials are removed."""

from django.db import models


class RetentionRule(models.Model):
    """Rule that bodies of trials of one kind are removed after some days.

    Bodies of a kind without a row are kept, and so are those of pinned trials (lab/operations/sql/due_trials.sql).

    Attributes:
        days: days since the end of the trial; for a deleted run, since its deletion; for an imported run, since its
            import.
    """

    class Kind(models.TextChoices):
        """Kind of trials. A trial has the first kind in this order that fits."""

        DELETED = "deleted", "Trials of deleted runs"
        SIMULATED = "simulated", "Trials of simulated models"
        IMPORTED = "imported", "Trials of imported runs"
        PASSED = "passed", "Passed trials"
        FAILED = "failed", "Failed trials"
        OTHER = "other", "Infrastructure errors and cancelled trials"

    kind = models.CharField(max_length=12, choices=Kind, unique=True)
    days = models.PositiveIntegerField()
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.days} days"
