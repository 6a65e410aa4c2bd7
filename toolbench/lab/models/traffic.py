"""Drafts of cases from recorded traffic, until somebody accepts or rejects them."""

from django.db import models


class TrafficDraft(models.Model):
    """Draft of a case from one or more equal requests. It is no case and no trial."""

    class State(models.TextChoices):
        """What was decided about the draft."""

        OPEN = "open", "open"
        ACCEPTED = "accepted", "accepted"
        REJECTED = "rejected", "rejected"

    digest = models.CharField(max_length=64, unique=True)  # of messages and tools
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    title = models.CharField(max_length=120)
    definition = models.TextField()  # JSON in ASCII, as CaseVersion has it
    file_name = models.CharField(max_length=200)
    line = models.PositiveIntegerField()  # of the first such request in the file
    count = models.PositiveIntegerField()  # requests with these messages and tools
    answer_count = models.PositiveIntegerField()  # different answers to them; the most frequent one is expected
    model = models.CharField(max_length=200, blank=True)  # that gave the expected answer
    masked = models.BooleanField(default=False)  # a secret was replaced
    case = models.ForeignKey("Case", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-count", "id"]
        indexes = [models.Index(fields=["state", "-count", "id"], name="traffic_drafts_by_state")]

    def __str__(self) -> str:
        return self.title
