"""Tables of schedules, alert rules, alerts and their delivery."""

from django.conf import settings
from django.db import models

from toolbench.lab.models.runs import Run


class Schedule(models.Model):
    """A saved plan from which runs are launched at regular times.

    Attributes:
        request: the RunRequest as JSON (lab/planning/run_request.py).
        every_hours: hours between launches; None if `hour_utc` is set.
        hour_utc: the hour (UTC) of a daily launch; None if `every_hours` is set.
        requests_per_run: request limit of each run. A user who saves the schedule confirms this number of paid requests
            for each run.
        requests_per_month: limit of requests for all its runs of a calendar month (UTC). A run that could exceed it is
            skipped.
        baseline_runs: the runs that a user pinned; later runs are compared with them.
        skip_reason: why the last due run was not launched; "" if it was launched, or if the schedule was paused or
            activated since then.
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
        """The times of launches in words, such as "nightly at 02:00 UTC" or "every 6 hours"."""
        if self.every_hours is None:
            return f"nightly at {self.hour_utc:02d}:00 UTC"
        return "every hour" if self.every_hours == 1 else f"every {self.every_hours} hours"


class AlertRule(models.Model):
    """A condition that is checked when a run ends, with the channels for its alerts.

    Attributes:
        schedule: the schedule whose runs are checked; None for all runs.
        threshold: limit in the unit of the kind (lab/schedules/conditions.py); None if the kind needs none.
        webhook_encrypted: URL to which alerts are sent, encrypted since it may contain a secret; None for no webhook.
        webhook_host: host of the webhook, which pages show, with the port if the URL names one; "" for no webhook.
        email: address to which alerts are sent; "" for no e-mail.
    """

    class Kind(models.TextChoices):
        """Kind of the condition."""

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
    webhook_host = models.CharField(max_length=260, blank=True)
    email = models.EmailField(blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.get_kind_display()


class Alert(models.Model):
    """An alert: a run met the condition of a rule.

    The alert is open until the rule checks a later finished run that does not meet the condition. If the alert's run is
    deleted, the next check of the rule resolves it. An alert that only says that a run has ended is resolved at once.

    Constraints of the table allow one open alert for each rule and series, and one alert for each rule, series and run.

    Attributes:
        run: the run that met the condition.
        series: key of the series that met the condition (lab/schedules/series.py); "" for an alert about the whole run.
        sentence: what was found, for users.
        resolved_at: None while the alert is open.
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

    A delivery is claimed before it is sent. If the process ends before the result is stored, the delivery becomes
    `unclear`. It is sent again only if a user retries it, since it may have arrived.

    Attributes:
        state: `failed` after the last attempt failed. A user can retry a failed or unclear delivery.
        attempts: number of attempts since the message was queued.
        next_attempt_at: when a pending delivery is due, or when one that is being sent counts as lost; otherwise None.
        last_error: why the last attempt failed or is unclear, without the address of the channel; "" without an error.
    """

    class Channel(models.TextChoices):
        """Channel of the message."""

        WEBHOOK = "webhook", "webhook"
        EMAIL = "email", "e-mail"

    class State(models.TextChoices):
        """State of the delivery."""

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
