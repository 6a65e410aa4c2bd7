"""Tables of sums over ended runs. Pages with figures over all runs read them instead of cells and trials."""

from typing import Any
from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.db import models

from toolbench.lab.models.counters import COUNTERS, CounterSpec
from toolbench.lab.models.runs import Run


class CellPool(models.Model):
    """Sums over the cells of ended runs with the same configuration and scenario version.

    lab/metrics/pools.py computes and reads the rows. The columns have the same names as in its queries over cells, so
    that the same code reads both. Each counter has a column `sum_<counter>`.

    Attributes:
        confirming: whether the runs are confirmation runs.
        first, last: when the first and the last of the runs were created.
        all_durations: durations of all cells, encoded as in CellTimes, unsorted; None without durations.
        all_first_tokens: times to the first token, encoded in the same way; None without such times.
        repeated: sums over repeated instances (RepeatedSums of lab/metrics/repeated_instances.py) as JSON; None for the
            published wording and for confirmation runs.
        sum_cells, sum_repeating, sum_unpriced, sum_set_aside: numbers of cells, as `cells`, `repeating_cells`,
            `unpriced_cells` and `uncomputed_cells` of Tally.
        sum_error: smallest error probability of cells with sequential stopping; None without such a cell.
        sum_cost: sum of the known costs of cells, in dollars; None if no cost is known.
    """

    simulated = models.BooleanField()
    imported = models.BooleanField()
    confirming = models.BooleanField()
    provider_name = models.CharField(max_length=80)
    provider_kind = models.CharField(max_length=16)
    model_name = models.CharField(max_length=200)
    profile = models.CharField(max_length=80)
    strategy = models.CharField(max_length=80)
    method = models.CharField(max_length=16)
    examples = models.CharField(max_length=80, blank=True)
    tool_use_mode = models.CharField(max_length=10)
    stream = models.BooleanField()
    policy_hash = models.CharField(max_length=64)
    instance_kind = models.CharField(max_length=8)
    scenario_group = models.CharField(max_length=20)
    control = models.BooleanField()
    scenario = models.CharField(max_length=60)
    scenario_version = models.PositiveSmallIntegerField()

    config_ids = ArrayField(models.BigIntegerField())
    cell_ids = ArrayField(models.BigIntegerField())
    run_ids = ArrayField(models.BigIntegerField())
    engines = ArrayField(models.CharField(max_length=20, blank=True))
    purposes = ArrayField(models.CharField(max_length=24, blank=True))
    canonicals = ArrayField(models.CharField(max_length=200, blank=True))
    prompts = ArrayField(models.CharField(max_length=40, blank=True))
    mixed_upstreams = models.BooleanField()
    first = models.DateTimeField()
    last = models.DateTimeField()
    all_durations = models.BinaryField(null=True)
    all_first_tokens = models.BinaryField(null=True)

    repeated = models.JSONField(null=True)

    sum_cells = models.PositiveIntegerField()
    sum_repeating = models.PositiveIntegerField()
    sum_unpriced = models.PositiveIntegerField()
    sum_set_aside = models.PositiveIntegerField()
    sum_error = models.FloatField(null=True)
    sum_cost = models.FloatField(null=True)

    class Meta:
        indexes = [models.Index(fields=["provider_name", "model_name"], name="pools_of_model")]

    def __str__(self) -> str:
        return f"{self.model_name} · {self.profile} × {self.scenario}"


def _build_sum_column(spec: CounterSpec) -> "models.Field[Any, Any]":
    """Return a database column for the sum of a counter, wide enough for any number of cells."""
    if spec.column is models.FloatField:
        return models.FloatField()
    if spec.column is models.PositiveIntegerField:
        return models.BigIntegerField()
    return models.DecimalField(max_digits=40, decimal_places=0)


for _name, _spec in COUNTERS.items():
    CellPool.add_to_class(f"sum_{_name}", _build_sum_column(_spec))


class CausePool(models.Model):
    """The number of trials of ended runs that have the same values in the columns up to `signature`.

    lab/metrics/cause_pools.py counts the trials that passed, failed or had an infrastructure error, and all others
    with a cause or failure class.

    Attributes:
        taxonomy: version of the table of causes by which the trials were classified; 0 if they were not classified.
        cause_signature, signature: as in Trial.
        trials: number of the trials.
        first_trial: the smallest primary key of the trials.
        first_seen: when the first of the trials finished; None if none has finished.
        runs: primary keys of their runs, as big-endian integers of 8 bytes.
    """

    simulated = models.BooleanField()
    imported = models.BooleanField()
    provider_name = models.CharField(max_length=80)
    model_name = models.CharField(max_length=200)
    profile = models.CharField(max_length=80)
    strategy = models.CharField(max_length=80)
    scenario = models.CharField(max_length=60)
    scenario_version = models.PositiveSmallIntegerField()
    instance_kind = models.CharField(max_length=8)
    outcome = models.CharField(max_length=10, blank=True)
    taxonomy = models.PositiveSmallIntegerField()
    cause = models.CharField(max_length=40, blank=True)
    cause_signature = models.CharField(max_length=240, blank=True)
    failure_class = models.CharField(max_length=60, blank=True)
    signature = models.CharField(max_length=200, blank=True)

    trials = models.PositiveBigIntegerField()
    first_trial = models.BigIntegerField()
    first_seen = models.DateTimeField(null=True)
    runs = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["provider_name", "model_name"], name="causes_of_model")]

    def __str__(self) -> str:
        return f"{self.model_name} × {self.scenario}: {self.cause or self.outcome}"


class PoolState(models.Model):
    """Version of CellPool and CausePool, in a single row. Each refresh that writes pools sets a new version."""

    version = models.UUIDField(default=uuid4)

    def __str__(self) -> str:
        return f"pools of version {self.version}"


class RunChange(models.Model):
    """Mark of a run whose cells were recomputed, so that its pools are outdated.

    A run may have several marks; the next refresh of the pools deletes them. Rows are never updated, so that
    transactions that recompute cells of the same run do not wait for each other.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_constraint=False)

    def __str__(self) -> str:
        return f"change of run {self.run_id}"
