"""Table of decision records."""

from django.conf import settings
from django.db import models


class DecisionRecord(models.Model):
    """A saved decision: the rule, the evidence and the verdict as they were when it was saved.

    New trials do not change its figures. The figures of a confirmation run are added once, after the run has ended.

    Attributes:
        sentence: the decision in words.
        simulated: whether any of the configurations has a simulated model.
    """

    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    who = models.CharField(max_length=150, blank=True)  # copy of the owner's name
    simulated = models.BooleanField(default=False)
    query = models.TextField(blank=True)  # query string of /decide/, which shows the current figures
    rule = models.JSONField(default=dict)  # DecisionRule as JSON: want, success in percent, within_ms or null
    group = models.CharField(max_length=20, blank=True)  # the scenario group that was decided on
    verdict = models.CharField(max_length=12)
    sentence = models.TextField()
    leader = models.CharField(max_length=600, blank=True)  # `key` of the best row in `evidence`; "" for none
    chosen_among = models.PositiveIntegerField(default=0)  # number of configurations that were compared
    evidence = models.JSONField(default=list)  # a row per configuration (lab/results/decide/records.py)
    engine_version = models.CharField(max_length=20, blank=True)
    confirmation = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    confirmed = models.JSONField(null=True, blank=True)  # row of the confirmation run; None until the user stores it
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.title
