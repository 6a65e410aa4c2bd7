"""Tables of the published matrix of the case study. No figure in them is measured by Toolbench."""

from django.db import models


class PublishedSnapshot(models.Model):
    """A publication of the matrix, with its date and source.

    Attributes:
        published: the date, as precise as the source: 2026-02.
        totals: `[passed, trials]` by "overall", "tool" and "control".
        scenarios: `[passed, trials]` by slug.
    """

    slug = models.SlugField(unique=True)
    title = models.CharField(max_length=200)
    source = models.TextField()
    published = models.CharField(max_length=20)
    trials = models.PositiveIntegerField()
    totals = models.JSONField(default=dict)
    scenarios = models.JSONField(default=dict)
    note = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.title


class PublishedCell(models.Model):
    """A row of the published matrix."""

    snapshot = models.ForeignKey(PublishedSnapshot, on_delete=models.CASCADE, related_name="cells")
    model = models.CharField(max_length=200)
    profile = models.CharField(max_length=80)
    tool_ok = models.PositiveIntegerField()
    tool_runs = models.PositiveIntegerField()
    control_ok = models.PositiveIntegerField()
    control_runs = models.PositiveIntegerField()
    p95_ms = models.PositiveIntegerField()
    failures = models.JSONField(default=list)  # [{"name", "count"}], the most frequent only
    not_applicable = models.BooleanField(default=False)  # by Toolbench's rules: tools are off for this model
    position = models.PositiveIntegerField()

    class Meta:
        ordering = ["snapshot_id", "position"]

    def __str__(self) -> str:
        return f"{self.model} · {self.profile}"


class PublishedRecommendation(models.Model):
    """A published recommendation for a model."""

    snapshot = models.ForeignKey(PublishedSnapshot, on_delete=models.CASCADE, related_name="recommendations")
    model = models.CharField(max_length=200)
    profile = models.CharField(max_length=80)
    parameters = models.CharField(max_length=200)
    preset = models.CharField(max_length=80, blank=True)
    recommended = models.CharField(max_length=60)
    notes = models.TextField(blank=True)
    position = models.PositiveIntegerField()

    class Meta:
        ordering = ["snapshot_id", "position"]

    def __str__(self) -> str:
        return f"{self.model}: {self.recommended}"
