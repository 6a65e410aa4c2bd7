"""Sending a stored trial again: a new run of one trial, with the layers its run froze and the same seeds."""

from django.db import transaction

from toolbench.lab.cells import recompute
from toolbench.lab.engine_version import engine_version
from toolbench.lab.launching import LaunchRefused
from toolbench.lab.models import Cell, Run, RunConfig, Trial
from toolbench.lab.waking import wake


@transaction.atomic
def resend(trial_id: int) -> Run:
    """Nothing is resolved anew but by this version of the engine; the trial's plan hash says whether the same was
    sent. Raises LaunchRefused when the trial or its provider is gone."""
    trial = Trial.objects.select_related("run", "config", "cell").filter(pk=trial_id).first()
    if trial is None:
        raise LaunchRefused({"trial": [f"There is no trial {trial_id}."]})
    if trial.config.provider_id is None:
        raise LaunchRefused({"trial": [f"The provider {trial.config.provider_name} was deleted."]})
    run = _copy_run(trial.run, trial_id)
    config = _copy_config(trial.config, run)
    cell = _copy_cell(trial.cell, run, config)
    Trial.objects.create(
        run=run,
        config=config,
        cell=cell,
        provider_id=config.provider_id,
        index=1,
        block=1,
        position=0,
        scenario=trial.scenario,
        scenario_version=trial.scenario_version,
        instance_kind=trial.instance_kind,
        instance_seed=trial.instance_seed,
        seed=trial.seed,
    )
    recompute([cell.pk])
    transaction.on_commit(lambda: wake([trial.config.provider_id] if trial.config.provider_id else []))
    return run


def _copy_run(run: Run, trial_id: int) -> Run:
    return Run.objects.create(
        title=f"Trial {trial_id} again",
        owner_id=run.owner_id,
        simulated=run.simulated,
        purpose="resend",
        instance_kind=run.instance_kind,
        seed=run.seed,
        order_seed=run.order_seed,
        trial_count=1,
        deadline_seconds=run.deadline_seconds,
        repeat_of=run,
        request=run.request,
        engine_version=engine_version(),
    )


def _copy_config(config: RunConfig, run: Run) -> RunConfig:
    config.pk, config.run, config.position, config._state.adding = None, run, 0, True
    config.save()
    return config


def _copy_cell(cell: Cell, run: Run, config: RunConfig) -> Cell:
    return Cell.objects.create(
        run=run,
        config=config,
        scenario=cell.scenario,
        scenario_version=cell.scenario_version,
        scenario_group=cell.scenario_group,
        control=cell.control,
        instance_kind=cell.instance_kind,
        deterministic=cell.deterministic,
    )
