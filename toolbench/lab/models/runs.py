"""Tables of runs, their configurations and their cells."""

from django.conf import settings
from django.db import models

from toolbench.lab.models.counters import COUNTERS, CellColumns, add_count_columns

MAX_FIGURE = 1e12  # dollars or milliseconds of one cell; keeps sums over cells within the range of floats
# Condition on runs that alert rules have to check: ended runs that were not checked since their end. A run that was
# reopened has a new end.
ALERTS_UNCHECKED = models.Q(state__in=["finished", "cancelled"]) & (
    models.Q(alerts_checked_at=None) | models.Q(alerts_checked_at__lt=models.F("finished_at"))
)


def _build_range_condition(*names: str) -> models.Q:
    """Return the condition that each of these columns is null, or a number from 0 to MAX_FIGURE; NaN is refused."""
    condition = models.Q()
    for name in names:
        condition &= models.Q((name, None)) | models.Q((f"{name}__gte", 0), (f"{name}__lte", MAX_FIGURE))
    return condition


class Run(models.Model):
    """Trials of a set of configurations in a set of scenarios, launched together.

    The settings in this row and in the run's configurations are those of the launch.
    """

    class State(models.TextChoices):
        """State of the run."""

        RUNNING = "running", "running"
        PAUSED = "paused", "paused"
        CANCELLING = "cancelling", "cancelling"
        CANCELLED = "cancelled", "cancelled"
        FINISHED = "finished", "finished"

    ENDED = (State.FINISHED, State.CANCELLED)
    PLAYGROUND = "playground"  # purpose of a run that the playground launched
    # Condition on the runs that results over all runs count. A playground run counts only where a user selects it.
    COUNTED = ~models.Q(purpose=PLAYGROUND)

    title = models.CharField(max_length=200, blank=True)
    label = models.CharField(max_length=80, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    stopped_reason = models.CharField(max_length=200, blank=True)  # why it was paused or cancelled, as pages show it
    simulated = models.BooleanField(default=False)  # whether it has a simulated model; pages show it under Simulated
    imported = models.BooleanField(default=False)  # from a bundle or a log; counted only where a user selects it
    origin = models.JSONField(default=dict, blank=True)  # Origin of an imported run (lab/interchange/origin.py) as JSON
    purpose = models.CharField(max_length=24, blank=True)  # "", first_page, resend, aa, confirm, cli, playground, …
    instance_kind = models.CharField(max_length=8, default="parity")  # parity or drawn
    seed = models.BigIntegerField(default=0)  # the seeds of instances and of sampling derive from it
    order_seed = models.BigIntegerField(default=0)  # seed of the random order of trials in each block
    trials_per_cell = models.PositiveIntegerField(default=1)  # with sequential stopping, the maximum
    until = models.JSONField(default=dict)  # StoppingRule of sequential stopping; {} for a fixed number of trials
    trial_count = models.PositiveIntegerField(default=0)
    request_cap = models.PositiveIntegerField(null=True, blank=True)  # limit of requests; None: no limit
    token_cap = models.PositiveBigIntegerField(null=True, blank=True)  # limit of tokens; None: no limit
    requests_reserved = models.PositiveIntegerField(default=0)  # number of requests, each counted before it is sent
    tokens_used = models.PositiveBigIntegerField(default=0)
    deadline_seconds = models.FloatField(default=600)  # trial deadline
    connect_seconds = models.FloatField(null=True, blank=True)  # timeout; None: the provider's value
    read_seconds = models.FloatField(null=True, blank=True)  # timeout; None: the provider's value
    jobs = models.PositiveIntegerField(null=True, blank=True)  # its concurrency limit per provider; None: no limit
    # the run whose settings this one repeats
    repeat_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="repeats")
    schedule = models.ForeignKey("Schedule", null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    alerts_checked_at = models.DateTimeField(null=True, blank=True)  # when alert rules last checked it after its end
    request = models.JSONField(default=dict)  # the RunRequest (lab/planning/run_request.py) as JSON
    skipped = models.JSONField(default=list)  # [{"what", "why"}]: configurations and scenarios that were left out
    engine_version = models.CharField(max_length=20, blank=True)
    pooled = models.BooleanField(default=False)  # whether its cells are in CellPool, which leaves out PLAYGROUND
    keeps_bodies = models.BooleanField(default=False)  # a user chose that retention never removes its bodies
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state"]),
            models.Index(fields=["simulated", "-id"]),
            models.Index(fields=["id"], name="runs_to_check", condition=ALERTS_UNCHECKED),
        ]

    def __str__(self) -> str:
        return self.title or f"Run {self.pk}"


class RunConfig(models.Model):
    """A configuration of a run: model, profile, strategy, method, examples, streaming and tool-use mode.

    Its settings are frozen at the launch, or once its probe is done. Names are copies, so that they stay when the
    provider or the model is deleted.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="configs")
    provider = models.ForeignKey("Provider", null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey("Model", null=True, on_delete=models.SET_NULL, related_name="+")
    provider_name = models.CharField(max_length=80)
    provider_kind = models.CharField(max_length=16)
    model_name = models.CharField(max_length=200)
    canonical = models.CharField(max_length=200, blank=True)  # as Model.canonical
    mixed_upstreams = models.BooleanField(default=False)  # as Model.mixed_upstreams
    service = models.CharField(max_length=80, blank=True)  # ServiceAddress.name of the local server; "" without one
    profile = models.CharField(max_length=80, default="default")
    options = models.JSONField(default=dict)  # the profile's sampling options
    strategy = models.CharField(max_length=80, default="production")  # StrategyExpression as text
    method = models.CharField(max_length=16, default="native")  # native, text_json, …; auto until the probe is done
    examples = models.CharField(max_length=80, blank=True)  # a few-shot set with its version; "" for none
    stream = models.BooleanField(default=False)
    tool_use_mode = models.CharField(max_length=10, default="enforced")
    layers = models.JSONField(default=list)  # [[name, patch], …], lowest first, without the scenario's layer
    policy_hash = models.CharField(max_length=64)
    routing = models.JSONField(default=dict)  # how method `auto` was resolved (lab/planning/auto_method.py)
    # the probe on which method `auto` depends
    probe = models.ForeignKey("Probe", null=True, on_delete=models.SET_NULL, related_name="+")
    awaits_probe = models.BooleanField(default=False)  # its trials are not claimed until the model's probe is done
    # whether the model supports tools, and where this is known from (lab/planning/tool_support.py)
    support = models.JSONField(default=dict)
    true_rates = models.JSONField(default=dict)  # success rates of a simulated model
    price = models.JSONField(default=dict)  # set by a user, or of an imported bundle; {}: the list price
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["run_id", "position"]

    def __str__(self) -> str:
        streamed = " · streamed" if self.stream else ""
        examples = f" · {self.examples}" if self.examples else ""
        named = f"{self.provider_name} · {self.model_name} · {self.profile}"
        return f"{named} · {self.strategy} · {self.method}{examples}{streamed}"


@add_count_columns(*COUNTERS)
class Cell(models.Model, CellColumns):
    """A configuration in one scenario.

    Its counters and figures are computed from its trials, in one SQL statement (lab/metrics/cells.py).
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="cells")
    config = models.ForeignKey(RunConfig, on_delete=models.CASCADE, related_name="cells")
    scenario = models.CharField(max_length=60)
    scenario_version = models.PositiveSmallIntegerField(default=1)
    scenario_group = models.CharField(max_length=20, default="tools")
    control = models.BooleanField(default=False)
    instance_kind = models.CharField(max_length=8, default="parity")
    deterministic = models.BooleanField(default=False)  # temperature 0, so repeats may not be independent
    position = models.PositiveIntegerField(default=0)
    stale = models.BooleanField(default=True)
    compute_error = models.CharField(max_length=200, blank=True)  # why its sums cannot be computed; "" if they can
    # error probability of its anytime-valid interval with sequential stopping; None: a fixed number of trials
    error = models.FloatField(null=True)
    decided = models.CharField(max_length=12, blank=True)  # "" or a key of DECISION_TEXTS (runs/sequential_stopping.py)

    cost = models.FloatField(null=True)  # dollars; None: the cost of a trial is unknown, or no request was sent
    first_token_p50_ms = models.FloatField(null=True)  # of the times to the first token of streamed trials
    p50_ms = models.FloatField(null=True)  # of the durations of answered trials
    p95_ms = models.FloatField(null=True)  # of the durations of answered trials
    upstreams = models.JSONField(default=list)  # names of the hosts to which a router sent requests
    prompt_version = models.CharField(max_length=40, blank=True)  # the newest version among its trials

    class Meta:
        ordering = ["run_id", "position"]
        indexes = [
            models.Index(fields=["run", "scenario"]),
            models.Index(fields=["id"], name="stale_cells", condition=models.Q(stale=True)),
            models.Index(fields=["id"], name="cells_set_aside", condition=~models.Q(compute_error="")),
        ]
        constraints = [
            models.CheckConstraint(
                condition=_build_range_condition("cost", "first_token_p50_ms", "p50_ms", "p95_ms"),
                name="cell_figures_in_range",
            )
        ]

    def __str__(self) -> str:
        return f"{self.config} × {self.scenario}"

    @property
    def is_changing(self) -> bool:
        """Whether trials of the cell are running or the cell has to be recomputed."""
        return self.stale or self.running > 0


class CellTimes(models.Model):
    """Sorted times of the answered trials of a cell, from which quantiles over any cells can be computed.

    The table is separate so that pages that need only counts do not load the times. The statement that recomputes the
    cell also writes this row.

    Attributes:
        durations: `Trial.duration_ms`, as ascending big-endian floats of 8 bytes.
        first_tokens: times to the first token of streamed trials, in the same form.
        longest_ms: the longest of all these times; None without times. If it is out of range, the sums of the cell
            cannot be computed (`Cell.compute_error`).
    """

    cell = models.OneToOneField(Cell, primary_key=True, on_delete=models.CASCADE, related_name="times")
    durations = models.BinaryField(default=b"")
    first_tokens = models.BinaryField(default=b"")
    longest_ms = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=_build_range_condition("longest_ms"), name="cell_times_in_range")
        ]

    def __str__(self) -> str:
        return f"Times of cell {self.pk}"
