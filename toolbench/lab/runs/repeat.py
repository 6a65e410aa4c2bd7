"""Repeats of stored trials and runs, with the frozen settings of the run.

The policy is resolved by the installed engine, which may be newer than that of the original run. The plan hashes of two
trials show whether their plans are equal, apart from the seeds.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.pools import MORE_TRIALS_PURPOSE
from toolbench.lab.metrics.provider_budget import BudgetReachedError, check_provider_budgets
from toolbench.lab.models import Cell, Run, RunConfig, Trial
from toolbench.lab.planning.auto_method import queue_first_probes
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs.local_demo import DEMO_PURPOSES
from toolbench.lab.scenarios.catalogue import MAX_SEED
from toolbench.lab.worker.completion import finish_runs
from toolbench.lab.worker.queue import notify_workers, queue_trials

RESEND_PURPOSE = "resend"  # Run.purpose of a run that repeats one trial
NOISE_PURPOSE = "aa"  # Run.purpose of a repeat with new sampling seeds


@dataclass(frozen=True, slots=True)
class CopySettings:
    """Columns of a copied run that the caller of `_copy_trials` chooses."""

    title: str
    purpose: str
    owner_id: int | None


def resend_trial(trial_id: int) -> Run:
    """Launch a new run that repeats one trial with its seeds.

    Raises:
        LaunchError: there is no such trial, its run was imported, its provider was deleted, the trial was not
            applicable and never sent, or the budget of its provider is spent.
    """
    trial = Trial.objects.select_related("run", "config__provider").filter(pk=trial_id, run__deleted_at=None).first()
    if trial is None:
        raise LaunchError({"trial": [f"There is no trial {trial_id}."]})
    if trial.run.imported:
        raise LaunchError({"trial": [f"Run {trial.run_id} was imported, so its provider is not known here."]})
    if trial.config.provider is None:
        raise LaunchError({"trial": [f"The provider {trial.config.provider_name} was deleted."]})
    if trial.outcome == Trial.Outcome.NOT_APPLICABLE and not trial.execution:
        raise LaunchError({"trial": [f"Trial {trial_id} was never sent. {trial.sentence}"]})
    try:
        check_provider_budgets([trial.config.provider])
    except BudgetReachedError as error:
        raise LaunchError({"trial": [str(error)]}) from error
    source, trial.index, trial.block, trial.position = trial.run, 1, 1, 0
    purpose = source.purpose if source.purpose == Run.PLAYGROUND else RESEND_PURPOSE
    return _copy_trials(source, [trial], CopySettings(f"Trial {trial_id} again", purpose, source.owner_id))


def repeat_run(run: Run, *, owner: AbstractBaseUser | None) -> Run:
    """Repeat a run with the same seeds, without manually added trials.

    The repeat has the purpose of the run, with two exceptions, whose repeats have the purpose "" of ordinary runs. With
    the same purpose, the repeat of a run of the local demo would replace it on the home page, and the repeat of a run
    that adds missing trials to a decision would count in the decision.
    """
    planned_trials = run.trials.filter(added_by_hand=False).defer("rendered_prompt", "final_text", "verdict")
    purpose = "" if run.purpose in (*DEMO_PURPOSES, MORE_TRIALS_PURPOSE) else run.purpose
    copy_settings = CopySettings(run.title, purpose, owner.pk if owner else None)
    return _copy_trials(run, list(planned_trials.order_by("position")), copy_settings)


def find_noise_source(run: Run) -> Run:
    """Return the run that an A/A repeat of `run` repeats: its original if `run` is itself such a repeat."""
    return run.repeat_of if run.purpose == NOISE_PURPOSE and run.repeat_of else run


def repeat_for_noise(source: Run, *, owner: AbstractBaseUser | None) -> Run:
    """Repeat a run with new sampling seeds and otherwise equal settings, to measure A/A noise."""
    planned_trials = list(source.trials.filter(added_by_hand=False).defer("rendered_prompt", "final_text", "verdict"))
    for trial in planned_trials:
        trial.seed = secrets.randbelow(MAX_SEED)
    copy_settings = CopySettings(f"A/A of {source}"[:200], NOISE_PURPOSE, owner.pk if owner else None)
    return _copy_trials(source, planned_trials, copy_settings)


def _copy_trials(source: Run, trials: Sequence[Trial], copy_settings: CopySettings) -> Run:
    """Create a run with copies of trials of `source`, and notify workers.

    The configurations and cells of the trials are copied too.
    """
    with transaction.atomic():
        run = _copy_run(source, copy_settings, trials)
        configs = _copy_configs({trial.config_id for trial in trials}, run)
        cells = _copy_cells({trial.cell_id for trial in trials}, run, configs)
        queue_trials([_copy_trial(trial, cells[trial.cell_id]) for trial in trials])
        recompute([cell.pk for cell in cells.values()])
        queue_first_probes(run)
        provider_ids = {config.provider_id for config in configs.values() if config.provider_id}
        transaction.on_commit(lambda: notify_workers(provider_ids))
    finish_runs()  # needed if no trial of the run applies
    run.refresh_from_db()
    return run


def _copy_run(run: Run, copy_settings: CopySettings, trials: Sequence[Trial]) -> Run:
    """Create a copy of a run, without its configurations, cells and trials.

    The copy has no sequential stopping. Its trials per cell are the largest repeat number of the trials to copy.
    """
    return Run.objects.create(
        title=copy_settings.title,
        owner_id=copy_settings.owner_id,
        simulated=run.simulated,
        purpose=copy_settings.purpose,
        instance_kind=run.instance_kind,
        seed=run.seed,
        order_seed=run.order_seed,
        trials_per_cell=max((trial.index for trial in trials), default=run.trials_per_cell),
        trial_count=len(trials),
        request_cap=run.request_cap,
        token_cap=run.token_cap,
        deadline_seconds=run.deadline_seconds,
        connect_seconds=run.connect_seconds,
        read_seconds=run.read_seconds,
        jobs=run.jobs,
        repeat_of=run,
        request=run.request,
        skipped=run.skipped,
        engine_version=compute_engine_version(),
    )


def _copy_configs(config_ids: Collection[int], run: Run) -> dict[int, RunConfig]:
    """Copy configurations and return the copies by the id of the original."""
    copies: dict[int, RunConfig] = {}
    for position, config in enumerate(RunConfig.objects.filter(pk__in=config_ids).order_by("position")):
        copies[config.pk] = config
        config.pk, config.run, config.position, config._state.adding = None, run, position, True
        config.save()
    return copies


def _copy_cells(cell_ids: Collection[int], run: Run, configs: Mapping[int, RunConfig]) -> dict[int, Cell]:
    """Copy cells and return the copies by the id of the original."""
    return {
        cell.pk: Cell.objects.create(
            run=run,
            config=configs[cell.config_id],
            scenario=cell.scenario,
            scenario_version=cell.scenario_version,
            scenario_group=cell.scenario_group,
            control=cell.control,
            instance_kind=cell.instance_kind,
            deterministic=cell.deterministic,
            position=position,
        )
        for position, cell in enumerate(Cell.objects.filter(pk__in=cell_ids).order_by("position"))
    }


def _copy_trial(trial: Trial, cell: Cell) -> Trial:
    """Build an unsaved copy of a trial.

    If the trial was not applicable and never sent, the copy is done, with the same outcome.
    """
    copy = Trial(
        run=cell.run,
        config=cell.config,
        cell=cell,
        provider_id=cell.config.provider_id,
        index=trial.index,
        block=trial.block,
        position=trial.position,
        scenario=trial.scenario,
        scenario_version=trial.scenario_version,
        instance_kind=trial.instance_kind,
        instance_seed=trial.instance_seed,
        seed=trial.seed,
    )
    if trial.outcome == Trial.Outcome.NOT_APPLICABLE and not trial.execution:
        copy.state, copy.outcome = Trial.State.DONE, trial.outcome
        copy.failure_class, copy.sentence = trial.failure_class, trial.sentence
    return copy
