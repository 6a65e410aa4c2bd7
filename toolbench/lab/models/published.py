"""Tables of the case study's published matrix. Toolbench measured none of their figures."""

from django.db import models


class PublishedSnapshot(models.Model):
    """A publication of the matrix, with its date and source.

    Attributes:
        published: date of publication, as precise as the source states it, such as 2026-02.
        trials: number of trials of each scenario in each row of the matrix.
        totals: `[passed, trials]` over all rows, by "overall", "tool" and "control".
        scenarios: `[passed, trials]` over all rows, by slug of the scenario.
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
    """A row of the published matrix: a model with a sampling profile, over all scenarios.

    It is not a cell, which covers only one scenario.

    Attributes:
        tool_ok: number of passed trials of the tool scenarios.
        tool_runs: number of trials of the tool scenarios.
        control_ok: number of passed trials of the control.
        control_runs: number of trials of the control.
        p95_ms: nearest-rank p95 of the duration of all these trials, in milliseconds.
        failures: `{"name", "count"}` for each kind of failure with a published count; other counts are unknown.
        not_applicable: whether Toolbench would rate the row's trials as not applicable, because tools are off for the
            model.
        position: place in the order of the matrix, from 0.
    """

    snapshot = models.ForeignKey(PublishedSnapshot, on_delete=models.CASCADE, related_name="cells")
    model = models.CharField(max_length=200)
    profile = models.CharField(max_length=80)
    tool_ok = models.PositiveIntegerField()
    tool_runs = models.PositiveIntegerField()
    control_ok = models.PositiveIntegerField()
    control_runs = models.PositiveIntegerField()
    p95_ms = models.PositiveIntegerField()
    failures = models.JSONField(default=list)
    not_applicable = models.BooleanField(default=False)
    position = models.PositiveIntegerField()

    class Meta:
        ordering = ["snapshot_id", "position"]

    def __str__(self) -> str:
        return f"{self.model} · {self.profile}"


class PublishedRecommendation(models.Model):
    """A published recommendation for a model.

    Attributes:
        recommended: whether the profile is recommended, in the words of the source, such as "Conditional".
        position: place in the order of the source, from 0.
    """

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
