"""Tables of probes and of their requests and answers."""

from django.db import models


class Probe(models.Model):
    """A probe of one model: requests that find out what its endpoint supports.

    While the probe runs, every write checks `lease`; a write after the lease was lost changes nothing.

    Attributes:
        model_name, provider_name: copies of the names when the probe was requested.
        base_url: the base URL that the requests used, with keys masked; "" before the probe's end.
        why: why the probe was requested, as pages show it.
        asked_at: when the probe was requested.
        ok: True if the answers show whether the endpoint returns calls in their own field, False if they do not show
            it; None before the probe's end.
        error: the error code (providers/data/outcomes.json) because of which `ok` is False; "" without one.
        sentence: the result of the check of tools, or why the probe failed.
        latency_ms: duration of the first exchange; None without an exchange.
        raw_hash: SHA-256 of the body of the first answer; "" without an exchange.
        checks: the ProbeCheck (providers/probing/check_result.py) of each check as JSON, in order.
        learned: the capabilities that all checks together show, by name (Capabilities of the engine).
        adopted: name of the preset that was adopted from the probe; "" for none.
    """

    class Kind(models.TextChoices):
        """Kind of the probe."""

        FIRST_USE = "first_use", "first use"
        CONFORMANCE = "conformance", "conformance"

    class State(models.TextChoices):
        """State of the probe."""

        QUEUED = "queued", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"

    model = models.ForeignKey("Model", on_delete=models.CASCADE, related_name="probes")
    provider = models.ForeignKey("Provider", on_delete=models.CASCADE, related_name="probes")
    model_name = models.CharField(max_length=200)
    provider_name = models.CharField(max_length=80)
    base_url = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=12, choices=Kind)
    why = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    execution = models.PositiveIntegerField(default=0)
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    ok = models.BooleanField(null=True)
    error = models.CharField(max_length=60, blank=True)
    sentence = models.TextField(blank=True)
    latency_ms = models.FloatField(null=True)
    raw_hash = models.CharField(max_length=64, blank=True)
    checks = models.JSONField(default=list)
    learned = models.JSONField(default=dict)
    adopted = models.CharField(max_length=80, blank=True)
    engine_version = models.CharField(max_length=20, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["model", "-id"]),
            models.Index(fields=["state"], name="open_probes", condition=~models.Q(state="done")),
        ]

    def __str__(self) -> str:
        return f"Probe {self.pk}"


class ProbeExchange(models.Model):
    """A request of a probe and its answer, with masked secrets.

    Exchanges of a lost execution are kept, since their requests were sent.

    Attributes:
        ordinal: position in the execution of the probe.
        check_slug: the check that sent the request.
        error_code: a code of providers/data/outcomes.json; "" without an error.
        body_cut: whether the stored answer is truncated.
        masked: whether a secret was masked in the request or the answer.
        cost: dollars, as the provider reported them; None if it did not.
        request, response: the bodies.
    """

    probe = models.ForeignKey(Probe, on_delete=models.CASCADE, related_name="exchanges")
    execution = models.PositiveIntegerField()
    ordinal = models.PositiveIntegerField()
    check_slug = models.CharField(max_length=40)
    url = models.CharField(max_length=400, blank=True)
    status = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=60, blank=True)
    duration_ms = models.FloatField()
    streamed = models.BooleanField(default=False)
    body_cut = models.BooleanField(default=False)
    masked = models.BooleanField(default=False)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    cost = models.FloatField(null=True)
    request = models.BinaryField(default=b"")
    response = models.BinaryField(default=b"")

    class Meta:
        ordering = ["probe_id", "execution", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["probe", "execution", "ordinal"], name="one_exchange_per_ordinal")
        ]

    def __str__(self) -> str:
        return f"exchange {self.ordinal} of probe {self.probe_id}"
