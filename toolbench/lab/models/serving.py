"""Tables of the gateway: aliases, their bindings, traces and costs.

Traces are not trials and count in no cell or rate.
"""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils import timezone


class ModelAlias(models.Model):
    """A name under which the gateway serves a model, with frozen settings.

    Attributes:
        layers: policy layers of the frozen settings, in the form of RunConfig.layers.
        config: the measured configuration whose settings the alias has; None if the settings were chosen one by one, or
            the configuration was deleted.
        repairs: whether the gateway re-prompts once after an invalid call.
        fallbacks: names of aliases that are tried in order if the model cannot be reached or fails.
        keep_percent: percentage of requests that are stored as traces.
        keep_bodies: whether traces include the bodies.
    """

    name = models.CharField(max_length=100, unique=True)
    model = models.ForeignKey("Model", on_delete=models.CASCADE, related_name="aliases")
    profile = models.CharField(max_length=80, default="default")
    strategy = models.CharField(max_length=200, default="production")
    method = models.CharField(max_length=20, default="native")
    layers = models.JSONField(default=list)
    policy_hash = models.CharField(max_length=64, blank=True)
    config = models.ForeignKey("RunConfig", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    repairs = models.BooleanField(default=True)
    fallbacks = models.JSONField(default=list)
    keep_percent = models.PositiveSmallIntegerField(default=100)
    keep_bodies = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "model aliases"

    def __str__(self) -> str:
        return self.name


class AliasBinding(models.Model):
    """The settings that an alias had from `created_at` until its next binding.

    The newest row of an alias is its current binding. The names of user, model and provider are copies, which are kept
    if the rows are deleted.

    Attributes:
        cause: why the alias got these settings.
        who: name of the user who changed the settings; "" if the scheduler changed them or no user is signed in.
        layers: as in ModelAlias.
        decision: the decision record that approves the settings; None without one.
        canary: the schedule whose runs compare the settings with the approved baseline; None without one.
        returns_on_alarm: whether an alarm of the canary gives the alias its last good binding again.
        alarm: sentence of the first alarm of the canary while the binding was current; "" for none.
        alarm_run: the run that raised the alarm.
    """

    class Cause(models.TextChoices):
        """Why an alias got a binding."""

        SAVED = "saved", "saved"
        PROMOTED = "promoted", "promoted"
        ROLLED_BACK = "rolled_back", "rolled back"
        ALARM = "alarm", "rolled back by an alarm"

    alias = models.ForeignKey(ModelAlias, on_delete=models.CASCADE, related_name="bindings")
    cause = models.CharField(max_length=12, choices=Cause.choices)
    who = models.CharField(max_length=150, blank=True)
    model = models.ForeignKey("Model", null=True, on_delete=models.SET_NULL, related_name="+")
    model_name = models.CharField(max_length=200)
    provider_name = models.CharField(max_length=80)
    profile = models.CharField(max_length=80)
    strategy = models.CharField(max_length=200)
    method = models.CharField(max_length=20)
    layers = models.JSONField(default=list)
    policy_hash = models.CharField(max_length=64, blank=True)
    config = models.ForeignKey("RunConfig", null=True, on_delete=models.SET_NULL, related_name="+")
    decision = models.ForeignKey("DecisionRecord", null=True, on_delete=models.SET_NULL, related_name="bindings")
    canary = models.ForeignKey("Schedule", null=True, on_delete=models.SET_NULL, related_name="+")
    returns_on_alarm = models.BooleanField(default=False)
    alarm = models.CharField(max_length=500, blank=True)
    alarm_run = models.ForeignKey("Run", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.provider_name} · {self.model_name} · {self.profile} · {self.strategy} · {self.method}"


class GatewayTrace(models.Model):
    """One request of a client to the gateway, with its answer or error.

    Attributes:
        alias: the requested alias.
        served_by: the alias that answered, else the last one that was tried; it may be a fallback of the requested one.
        dialect: wire format of the client's request and of the answer to it.
        status: HTTP status of the answer to the client; 499 if the client disconnected first.
        code: the error code; "client_left" if the client disconnected first; "" for an answer.
        path: the method that was used.
        changes: names of the changes that the gateway made to the request or the answer.
        requests: number of requests that the gateway sent to models, retries included.
        client_request, client_response: bodies, truncated to 1 MiB, with the providers' secrets masked; None if bodies
            are not stored.
        upstream_request, upstream_response: the same for the last exchange with a model; None also if nothing was sent.
        traffic_line: request and answer as one JSON object of recorded traffic in the form of chat completions, masked.
            None if bodies are not stored, if the client's bodies can themselves be read as recorded traffic, for an
            error, and if the object would be longer than 1 MiB.
        steps: the exchanges with models as JSON without bodies (lab/traces/gateway_steps.py); None if bodies are not
            stored, nothing was sent, or the JSON would be longer than 1 MiB.
    """

    alias = models.CharField(max_length=100)
    served_by = models.CharField(max_length=100, blank=True)
    model_name = models.CharField(max_length=200, blank=True)
    token_name = models.CharField(max_length=60, blank=True)
    simulated = models.BooleanField(default=False)
    dialect = models.CharField(max_length=12)
    stream = models.BooleanField(default=False)
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField()
    code = models.CharField(max_length=60, blank=True)
    sentence = models.TextField(blank=True)
    path = models.CharField(max_length=20, blank=True)
    calls = models.PositiveIntegerField(default=0)
    changes = models.JSONField(default=list)
    requests = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(null=True)
    output_tokens = models.PositiveBigIntegerField(null=True)
    cost = models.FloatField(null=True)  # US dollars, as the provider reports them
    duration_ms = models.FloatField()
    upstream_ms = models.FloatField(default=0)
    client_request = models.BinaryField(null=True)
    client_response = models.BinaryField(null=True)
    upstream_request = models.BinaryField(null=True)
    upstream_response = models.BinaryField(null=True)
    traffic_line = models.BinaryField(null=True)
    steps = models.BinaryField(null=True)
    text_stale = models.BooleanField(default=True)  # whether the search text is missing or outdated

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["alias", "-id"], name="gateway_traces_by_alias"),
            models.Index(fields=["at"], name="gateway_traces_by_age"),
            models.Index(fields=["at", "id"], name="stale_trace_texts", condition=models.Q(text_stale=True)),
        ]

    def __str__(self) -> str:
        return f"{self.alias} {self.at:%Y-%m-%d %H:%M:%S}"


class GatewayTraceText(models.Model):
    """The searchable text of a trace, with the same columns as TrialText. The sweep writes it."""

    trace = models.OneToOneField(GatewayTrace, on_delete=models.CASCADE, primary_key=True, related_name="search_text")
    text = models.TextField()
    words = SearchVectorField()

    class Meta:
        indexes = [
            GinIndex(fields=["words"], name="search_trace_words"),
            GinIndex(OpClass("text", name="gin_trgm_ops"), name="search_trace_parts"),
        ]

    def __str__(self) -> str:
        return f"search text of trace {self.trace_id}"


class GatewaySpending(models.Model):
    """Cost of the gateway's requests at one provider in one calendar month (UTC).

    Requests that were not stored as traces are included.

    Attributes:
        month: the first day of the month.
        dollars: sum of the known costs.
        known: number of requests whose cost is known.
        unknown: number of answered requests whose cost is unknown.
    """

    provider = models.ForeignKey("Provider", on_delete=models.CASCADE, related_name="gateway_spending")
    month = models.DateField()
    dollars = models.FloatField(default=0)
    known = models.PositiveBigIntegerField(default=0)
    unknown = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-month", "provider_id"]
        verbose_name_plural = "gateway spending"
        constraints = [models.UniqueConstraint(fields=["provider", "month"], name="gateway_spending_once_a_month")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: ${self.dollars:.4f}"


class SpendingWriter(models.Model):
    """A gateway process and its last stored batch of costs, so that no batch is added twice.

    Attributes:
        key: random id of the process.
        last_batch: number of the last stored batch; the batches of a process are numbered from 1.
    """

    key = models.UUIDField(primary_key=True)
    last_batch = models.PositiveBigIntegerField()
    stored_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-stored_at"]

    def __str__(self) -> str:
        return f"{self.key}: {self.last_batch}"
