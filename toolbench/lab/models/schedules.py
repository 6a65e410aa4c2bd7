"""Schedules, which repeat a saved plan, and the alerts about their runs."""

from django.conf import settings
from django.db import models

from toolbench.lab.models.runs import Run


class Schedule(models.Model):
    """A saved plan that is launched again and again.

    Attributes:
        request: the plan (lab/planning/run_request.py).
        every_hours, hour_utc: one of them is set: the interval, or the hour of every night.
        requests_per_run: request limit of each run. Whoever saves it confirms so many paid requests.
        requests_per_month: no run is launched that could send more in a calendar month (UTC).
        baseline_runs: runs that later runs are compared with; pinned by a person.
        skip_reason: why the last due run was not launched; "" if it was.
    """

    name = models.CharField(max_length=120)
    request = models.JSONField(default=dict)
    every_hours = models.PositiveSmallIntegerField(null=True, blank=True)
    hour_utc = models.PositiveSmallIntegerField(null=True, blank=True)
    requests_per_run = models.PositiveIntegerField()
    requests_per_month = models.PositiveIntegerField()
    active = models.BooleanField(default=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    baseline_runs = models.ManyToManyField(Run, related_name="+", blank=True)
    next_due_at = models.DateTimeField()
    skip_reason = models.CharField(max_length=300, blank=True)
    skipped_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(every_hours=None, hour_utc__range=(0, 23))
                | models.Q(every_hours__gte=1, hour_utc=None),
                name="schedule_has_one_rhythm",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rhythm(self) -> str:
        """When it runs, in words."""
        if self.every_hours is None:
            return f"nightly at {self.hour_utc:02d}:00 UTC"
        return "every hour" if self.every_hours == 1 else f"every {self.every_hours} hours"


class AlertRule(models.Model):
    """A condition that is checked when a run ends, and who is told.

    Attributes:
        schedule: the schedule whose runs are checked; None for all runs.
        threshold: in the unit of the kind (lab/schedules/rules.py); None where the kind has none.
        webhook_encrypted: address for a POST, which may hold a secret; None without one.
    """

    class Kind(models.TextChoices):
        DRIFT = "drift", "Success drops"
        BELOW_TARGET = "below_target", "Below the target"
        SLOW = "slow", "p95 too slow"
        INFRASTRUCTURE = "infrastructure", "Infrastructure"
        SPEND = "spend", "Spend"
        ANSWERS_CHANGED = "answers_changed", "Answers changed"
        RUN_ENDED = "run_ended", "Run ended"

    schedule = models.ForeignKey(Schedule, null=True, blank=True, on_delete=models.CASCADE, related_name="rules")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    threshold = models.FloatField(null=True, blank=True)
    webhook_encrypted = models.BinaryField(null=True)
    webhook_host = models.CharField(max_length=260, blank=True)  # what pages show of the address
    email = models.EmailField(blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.get_kind_display()


class Alert(models.Model):
    """A rule's condition that holds, from one run on; open until a later run does not meet it.

    The database refuses a second open alert of a rule about the same series, and a second one about the same run.

    Attributes:
        series: the configuration (lab/schedules/series.py); "" if it is about the whole run.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="alerts")
    series = models.CharField(max_length=64, blank=True)
    sentence = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "series", "run"], name="alert_once_per_run"),
            models.UniqueConstraint(
                fields=["rule", "series"], condition=models.Q(resolved_at=None), name="alert_open_once"
            ),
        ]

    def __str__(self) -> str:
        return self.sentence


class AlertDelivery(models.Model):
    """The message about an alert on one channel.

    A delivery is claimed before it is sent. If the process ends in between, nobody knows whether it arrived: it is
    `unclear` and not sent again.

    Attributes:
        state: `failed` after the last attempt; a person can try again.
        last_error: a sentence without the address.
    """

    class Channel(models.TextChoices):
        WEBHOOK = "webhook", "webhook"
        EMAIL = "email", "e-mail"

    class State(models.TextChoices):
        PENDING = "pending", "waiting"
        SENDING = "sending", "being sent"
        SENT = "sent", "sent"
        FAILED = "failed", "failed"
        UNCLEAR = "unclear", "unclear"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=8, choices=Channel.choices)
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["alert", "channel"], name="delivery_once_per_channel")]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                name="deliveries_to_send",
                condition=models.Q(state__in=["pending", "sending"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} of alert {self.alert_id}"
