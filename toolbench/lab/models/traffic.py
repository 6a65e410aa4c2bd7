"""Table of drafts of test cases, made from recorded traffic. A user accepts or rejects each draft."""

from django.db import models


class TrafficDraft(models.Model):
    """A draft of a test case from recorded requests with the same messages and tools.

    Attributes:
        digest: SHA-256 of the masked messages and tools of the requests.
        definition: JSON in the form of CaseVersion.definition, with ASCII characters only.
        line: number of the first of the requests in the file: its line, or its position in a JSON array, from 1.
        count: number of the requests.
        answer_count: number of distinct answers; the most frequent one is the expected answer.
        model: the first model that gave the expected answer.
        masked: whether a secret was masked.
        case: the test case that an accepted draft became; None before, and if the test case was deleted.
    """

    class State(models.TextChoices):
        """Decision about the draft."""

        OPEN = "open", "open"
        ACCEPTED = "accepted", "accepted"
        REJECTED = "rejected", "rejected"

    digest = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    title = models.CharField(max_length=120)
    definition = models.TextField()
    file_name = models.CharField(max_length=200)
    line = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    answer_count = models.PositiveIntegerField()
    model = models.CharField(max_length=200, blank=True)
    masked = models.BooleanField(default=False)
    case = models.ForeignKey("Case", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-count", "id"]
        indexes = [models.Index(fields=["state", "-count", "id"], name="traffic_drafts_by_state")]

    def __str__(self) -> str:
        return self.title
