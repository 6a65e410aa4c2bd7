"""Decision records: the rule, the evidence and the answer at one time."""

from django.conf import settings
from django.db import models


class DecisionRecord(models.Model):
    """A decision with frozen figures, which newer trials never change.

    The figures of a confirmation on fresh trials are added once, when it has ended.
    """

    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    who = models.CharField(max_length=150, blank=True)  # the owner's name, a copy
    simulated = models.BooleanField(default=False)
    query = models.TextField(blank=True)  # of /decide/, to look again
    rule = models.JSONField(default=dict)  # want, success in percent, within_ms or null
    group = models.CharField(max_length=20, blank=True)  # of scenarios
    verdict = models.CharField(max_length=12)
    sentence = models.TextField()
    leader = models.CharField(max_length=600, blank=True)  # key of a row of the evidence, "" for none
    chosen_among = models.PositiveIntegerField(default=0)
    evidence = models.JSONField(default=list)  # a row per configuration (lab/results/decide/records.py)
    engine_version = models.CharField(max_length=20, blank=True)
    confirmation = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    confirmed = models.JSONField(null=True, blank=True)  # the confirmation's row, frozen; null until it is kept
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.title
