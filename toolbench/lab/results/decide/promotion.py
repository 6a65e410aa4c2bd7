"""Configuration to promote to a gateway alias, with its decision record and the plan of its canary."""

from dataclasses import dataclass

from toolbench.lab.models import DecisionRecord, Run, RunConfig
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.results.decide.new_trials import (
    NewTrialsError,
    NewTrialsRequest,
    build_new_trials_request,
)
from toolbench.lab.results.decide.page import find_promotable
from toolbench.lab.results.decide.records import find_leader_row


@dataclass(frozen=True, slots=True)
class PromotionSource:
    """A configuration that can be promoted to a gateway alias.

    Attributes:
        config: the configuration; for a confirmed record, that of the confirmation run unless the run was deleted.
        record: the decision record; None without one.
        canary_plan: the plan of the canary's runs; None if there can be no canary.
        refusal: reason why there can be no canary; "" if there can be one.
    """

    config: RunConfig
    record: DecisionRecord | None
    canary_plan: RunRequest | None
    refusal: str

    @property
    def baseline(self) -> Run:
        """Return the run of the configuration. Canary runs are compared with this run."""
        return self.config.run


def is_promotable(record: DecisionRecord) -> bool:
    """Return whether the record has a leader whose model is connected here, with at most two SQL queries."""
    config_id = _find_config_id(record)
    return config_id is not None and config_id in find_promotable([config_id])


def get_promotion_source(config_id: int | None, record_id: int | None) -> PromotionSource | None:
    """Return the source of a promotion.

    Args:
        config_id: id of a configuration; ignored if the record exists.
        record_id: id of a decision record, whose leader is promoted; without such a record, `config_id` is used.

    Returns:
        The source; None if there is no such configuration, it has no model here, or the record has no leader.
    """
    record = DecisionRecord.objects.filter(pk=record_id).first() if record_id else None
    if record is not None:
        config_id = _find_config_id(record)
    config = RunConfig.objects.select_related("run", "model").filter(pk=config_id or 0, model__isnull=False).first()
    if config is None:
        return None
    plan, refusal = None, ""
    try:
        plan = _build_canary_plan(config)
    except NewTrialsError as error:
        refusal = str(error)
    return PromotionSource(config, record, plan, refusal)


def _find_config_id(record: DecisionRecord) -> int | None:
    """Return the id of the leader's configuration; None without a leader.

    For a confirmed record, it is the configuration in the confirmation run. If that run was deleted, and for a record
    without a confirmed result, it is the configuration in the evidence of the record.
    """
    row = find_leader_row(record)
    if row is None:
        return None
    if record.confirmed:
        confirmation = RunConfig.objects.filter(run=record.confirmed["run_id"], run__deleted_at=None)
        confirmed = confirmation.filter(policy_hash=row["settings"]).first()
        return confirmed.pk if confirmed else row["config_id"]
    return int(row["config_id"])


def _build_canary_plan(config: RunConfig) -> RunRequest:
    """Return the plan that repeats the scenarios of a configuration.

    Each scenario gets the trials per cell of the configuration's run, at most MAX_CELL_TRIALS.

    Raises:
        NewTrialsError: the run of the configuration has not finished or was deleted, or the same settings and tasks
            cannot be tried again.
    """
    if config.run.state != Run.State.FINISHED or config.run.deleted_at is not None:
        raise NewTrialsError("The run of this configuration has not finished or was deleted, so there is no baseline.")
    scenarios = tuple(dict.fromkeys(config.cells.order_by("position").values_list("scenario", flat=True)))
    trials = min(MAX_CELL_TRIALS, config.run.trials_per_cell)
    trials_request = NewTrialsRequest((config.pk,), (config.policy_hash,), scenarios, trials)
    return build_new_trials_request(trials_request, title=str(config), purpose="")
