"""Aliases that the gateway serves, and its traces. A trace is no trial: no cell and no rate counts it."""

from django.conf import settings
from django.db import models


class ModelAlias(models.Model):
    """Name under which the gateway serves a model with frozen settings.

    Attributes:
        layers: policy layers, frozen when the alias is saved, as RunConfig has them.
        config: the measured configuration that it was made from, or None.
        repairs: whether a call that is not valid is asked for once more.
        fallbacks: names of aliases that are tried in order if the upstream fails.
        keep_percent: share of requests that are kept as traces.
        keep_bodies: whether a trace has the bodies; without, it has figures only.
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


class GatewayTrace(models.Model):
    """One request that the gateway answered.

    Attributes:
        served_by: the alias that answered, which may be a fallback of the requested one.
        status: HTTP status of the answer to the client.
        code: of an error; empty for an answer.
        changes: names of what was changed between client and upstream.
        requests: exchanges with the upstream, retries included.
        client_request, client_response, upstream_request, upstream_response: bodies with known secrets masked, the
            upstream's of the last exchange; None where bodies are not kept.
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

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["alias", "-id"], name="gateway_traces_by_alias")]

    def __str__(self) -> str:
        return f"{self.alias} {self.at:%Y-%m-%d %H:%M:%S}"
