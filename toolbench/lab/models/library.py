"""Versions of the entries of the library: sampling profiles, presets, and settings of models."""

from django.db import models


class LibraryVersion(models.Model):
    """What an entry held from one save to the next; it never changes.

    Exactly one of `profile`, `preset` and `model` is set. The row of the entry holds what the next run uses.
    """

    profile = models.ForeignKey("SamplingProfile", null=True, on_delete=models.CASCADE, related_name="versions")
    preset = models.ForeignKey("Preset", null=True, on_delete=models.CASCADE, related_name="versions")
    model = models.ForeignKey("Model", null=True, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.JSONField()  # columns of the entry by name (lab/library/versions.py)
    username = models.CharField(max_length=150, blank=True)  # a copy, so that it outlives the person; "" for none
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["profile", "number"], name="one_version_of_a_profile"),
            models.UniqueConstraint(fields=["preset", "number"], name="one_version_of_a_preset"),
            models.UniqueConstraint(fields=["model", "number"], name="one_version_of_a_model"),
            models.CheckConstraint(
                condition=models.Q(profile__isnull=False, preset=None, model=None)
                | models.Q(profile=None, preset__isnull=False, model=None)
                | models.Q(profile=None, preset=None, model__isnull=False),
                name="version_of_one_entry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.profile or self.preset or self.model} version {self.number}"
