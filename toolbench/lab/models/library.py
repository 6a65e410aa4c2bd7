"""Table of the versions of library entries: sampling profiles, presets and settings of models."""

from django.db import models


class LibraryVersion(models.Model):
    """A copy of a library entry's content after it was saved. The copy never changes.

    Exactly one of `profile`, `preset` and `model` is set: the entry. New runs read the entry itself, not its versions.

    Attributes:
        number: counts from 1 within the entry.
        content: values of the entry's columns by name (CONTENT_COLUMNS of lab/library/versions.py).
        username: a copy of the name of the user who saved the entry; "" if nobody was signed in or Toolbench saved it.
    """

    profile = models.ForeignKey("SamplingProfile", null=True, on_delete=models.CASCADE, related_name="versions")
    preset = models.ForeignKey("Preset", null=True, on_delete=models.CASCADE, related_name="versions")
    model = models.ForeignKey("Model", null=True, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.JSONField()
    username = models.CharField(max_length=150, blank=True)
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
