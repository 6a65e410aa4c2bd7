"""Launch of runs. One transaction writes all rows of a run; workers are notified after its commit."""

import hashlib
import random
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.provider_budget import BudgetReachedError, check_provider_budgets
from toolbench.lab.models import Cell, Model, Provider, Run, RunConfig, Trial
from toolbench.lab.paid_requests import check_confirmed
from toolbench.lab.planning.auto_method import queue_first_probes
from toolbench.lab.planning.expansion import build_plan, count_applicable_cells, count_initial_repeats
from toolbench.lab.planning.run_names import build_run_title
from toolbench.lab.planning.run_request import LaunchError, Plan, RunRequest
from toolbench.lab.scenarios.catalogue import MAX_SEED
from toolbench.lab.worker.queue import notify_workers, queue_trials

MAX_STRATEGY_CHARACTERS = 80  # of the column RunConfig.strategy
WEATHER_DEMO_PURPOSE = "first_page"  # Run.purpose of the first run of the local demo


def launch(request: RunRequest, *, owner: AbstractBaseUser | None = None, confirmed_requests: int = 0) -> Run:
    """Launch a run.

    Args:
        request: models, settings and scenarios of the run.
        owner: the user who owns the run; None for a run without an owner.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        LaunchError: the request is invalid, a strategy is too long, or a provider has spent its budget for the month.
        PaidRequestsUnconfirmedError: the run may send more paid requests than were confirmed.
    """
    plan = build_plan(request)
    _check_strategies(plan)
    try:
        check_provider_budgets(
            Provider.objects.filter(pk__in={config.provider for config in plan.configs}).order_by("name")
        )
    except BudgetReachedError as error:
        raise LaunchError({"models": [str(error)]}) from error
    check_confirmed(plan.paid_requests, confirmed_requests)
    with transaction.atomic():
        run = _write_run(request, plan, owner)
        cells = _write_cells(run, plan, _write_configs(run, request, plan))
        trials = list(_iter_trials(run, plan, cells, count_initial_repeats(request)))
        queue_trials(trials)
        if all(trial.state == Trial.State.DONE for trial in trials):
            Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED, finished_at=run.created_at)
        recompute([cell.pk for cell in cells])
        queue_first_probes(run)
        transaction.on_commit(lambda: notify_workers(config.provider for config in plan.configs))
    run.refresh_from_db()
    return run


def _check_strategies(plan: Plan) -> None:
    """Check that the strategies fit their column. The strategy of an alias may be longer.

    Raises:
        LaunchError: a strategy is too long.
    """
    for config in plan.configs:
        if len(config.strategy) > MAX_STRATEGY_CHARACTERS:
            rule = f"In a run, a strategy has at most {MAX_STRATEGY_CHARACTERS} characters."
            raise LaunchError({"strategies": [f"{rule} Save {config.strategy} as a preset."]})


def derive_seed(*parts: object) -> int:
    """Return a number from 0 to MAX_SEED that depends on `parts` only."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") & MAX_SEED


def derive_instance_seed(run_seed: int, scenario: str, index: int) -> int:
    """Return the seed of an instance, the same for all configurations of the run.

    `index` is the number of the repeat, from 1. Repeats get consecutive seeds, so that scenarios that alternate choices
    by seed are balanced within a cell.
    """
    return (derive_seed("instance", run_seed, scenario) + index) & MAX_SEED


def derive_sampling_seed(run_seed: int, config_position: int, scenario: str, index: int) -> int:
    """Return the sampling seed of a trial; `index` is the number of the repeat, from 1."""
    return derive_seed("sampling", run_seed, config_position, scenario, index)


def _write_run(request: RunRequest, plan: Plan, owner: AbstractBaseUser | None) -> Run:
    seed = request.seed if request.seed is not None else secrets.randbelow(MAX_SEED)
    return Run.objects.create(
        title=request.title.strip()[:200] or build_run_title(plan),
        owner_id=owner.pk if owner else None,
        simulated=any(config.provider_kind == Provider.Kind.SIMULATED for config in plan.configs),
        purpose=request.purpose,
        instance_kind=request.instance_kind,
        seed=seed,
        order_seed=derive_seed("order", seed),
        trials_per_cell=request.trials,
        trial_count=len(plan.cells) * count_initial_repeats(request),
        until=request.until,
        request_cap=request.request_cap,
        token_cap=request.token_cap,
        deadline_seconds=request.deadline_seconds or settings.DEADLINE_SECONDS,
        connect_seconds=request.connect_seconds,
        read_seconds=request.read_seconds,
        jobs=request.jobs,
        request=request.to_json(),
        skipped=[{"what": item.what, "why": item.why} for item in plan.skipped],
        engine_version=compute_engine_version(),
    )


def _write_configs(run: Run, request: RunRequest, plan: Plan) -> list[RunConfig]:
    models = Model.objects.select_related("provider").in_bulk({config.model for config in plan.configs})
    return RunConfig.objects.bulk_create(
        RunConfig(
            run=run,
            position=position,
            tool_use_mode=request.tool_use_mode,
            **_copy_model_columns(models[config.model]),
            profile=config.profile,
            options=config.options,
            strategy=config.strategy,
            method=config.method,
            examples=config.examples,
            stream=config.stream,
            layers=[[name, patch] for name, patch in config.layers],
            policy_hash=config.policy_hash,
            routing=config.routing,
            support=config.support,
            probe_id=config.probe,
            awaits_probe=config.awaits_probe,
        )
        for position, config in enumerate(plan.configs)
    )


def _copy_model_columns(model: Model) -> dict[str, Any]:
    return {
        "provider": model.provider,
        "model": model,
        "provider_name": model.provider.name,
        "provider_kind": model.provider.kind,
        "model_name": model.name,
        "canonical": model.canonical,
        "mixed_upstreams": model.mixed_upstreams,
        "service": "" if model.provider.base_url else model.provider.service,  # a base URL replaces the local server
        "true_rates": model.true_rates,
        "price": model.price,
    }


def _write_cells(run: Run, plan: Plan, configs: Sequence[RunConfig]) -> list[Cell]:
    stopping_rule = StoppingRule.from_json(run.until) if run.until else None
    applicable_counts = count_applicable_cells(plan.cells)
    return Cell.objects.bulk_create(
        Cell(
            run=run,
            config=configs[cell.config],
            scenario=cell.scenario,
            scenario_version=cell.scenario_version,
            scenario_group=cell.scenario_group,
            control=cell.control,
            instance_kind=run.instance_kind,
            deterministic=cell.deterministic,
            error=(
                stopping_rule.compute_cell_error(applicable_counts[cell.scenario])
                if stopping_rule and cell.applicable
                else None
            ),
            position=position,
        )
        for position, cell in enumerate(plan.cells)
    )


def _iter_trials(run: Run, plan: Plan, cells: Sequence[Cell], block_count: int) -> Iterator[Trial]:
    """Yield trials block by block.

    A block has one trial of each cell, in the order of `_shuffle_cells`.
    """
    position = 0
    for block in range(1, block_count + 1):
        for cell_index in _shuffle_cells(run, plan, block):
            applicable = plan.cells[cell_index].applicable
            yield build_trial(run, cells[cell_index], block, position=position, applicable=applicable)
            position += 1


def _shuffle_cells(run: Run, plan: Plan, block: int) -> list[int]:
    """Return the indexes of the cells in plan.cells, in the order of a block.

    The order is drawn from the run's order seed. In the first run of the local demo, cells with method constrained come
    first, so that the home page soon shows valid calls.
    """
    cell_indexes = list(range(len(plan.cells)))
    random.Random(derive_seed(run.order_seed, block)).shuffle(cell_indexes)
    if run.purpose == WEATHER_DEMO_PURPOSE:
        cell_indexes.sort(key=lambda index: plan.configs[plan.cells[index].config].method != "constrained")
    return cell_indexes


def build_trial(run: Run, cell: Cell, index: int, *, position: int, applicable: bool) -> Trial:
    """Build an unsaved trial of a cell.

    Args:
        run: the run.
        cell: a cell of the run, with its configuration.
        index: number of the repeat, from 1.
        position: place in the order of the run, from 0.
        applicable: False if tools are off and the scenario is no control; the trial is then done, with outcome `na`.
    """
    config = cell.config
    trial = Trial(
        run=run,
        config=config,
        cell=cell,
        provider_id=config.provider_id,
        index=index,
        block=index,
        position=position,
        scenario=cell.scenario,
        scenario_version=cell.scenario_version,
        instance_kind=cell.instance_kind,
        instance_seed=derive_instance_seed(run.seed, cell.scenario, index),
        seed=derive_sampling_seed(run.seed, config.position, cell.scenario, index),
    )
    if not applicable:
        trial.state, trial.outcome, trial.failure_class = Trial.State.DONE, Trial.Outcome.NOT_APPLICABLE, "tools_off"
        trial.sentence = "Tools are off for this model, so tool scenarios do not apply to it."
    return trial
