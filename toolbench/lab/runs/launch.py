"""Launching a run: one transaction writes all that will be tried; the workers are woken when it is committed."""

import hashlib
import random
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.statistics.stopping import Until
from toolbench.lab.confirmation import check_agreed
from toolbench.lab.engine_version import engine_version
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.models import Cell, Model, Provider, Run, RunConfig, Trial
from toolbench.lab.planning.auto_method import ask_first_probes
from toolbench.lab.planning.expansion import competitors, expand, first_blocks
from toolbench.lab.planning.run_names import derived_name
from toolbench.lab.planning.run_request import Plan, RunRequest
from toolbench.lab.worker.notify import wake
from toolbench.lab.worker.queue import queue_trials

FIRST_PAGE = "first_page"
LARGEST_SEED = 0x7FFFFFFF  # what every endpoint takes


def launch(request: RunRequest, *, owner: AbstractBaseUser | None = None, agreed: int = 0) -> Run:
    """Raises LaunchRefused for what cannot be tried, and ConfirmationNeeded when more paid requests may be sent than
    without asking, and than were `agreed` to."""
    plan = expand(request)
    check_agreed(plan.paid_requests, agreed)
    with transaction.atomic():
        run = _write_run(request, plan, owner)
        cells = _write_cells(run, plan, _write_configs(run, request, plan))
        trials = list(_trials(run, plan, cells, first_blocks(request)))
        queue_trials(trials)
        if all(trial.state == Trial.State.DONE for trial in trials):
            Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED, finished_at=run.created_at)
        recompute([cell.pk for cell in cells])
        ask_first_probes(run)
        transaction.on_commit(lambda: wake(config.provider for config in plan.configs))
    run.refresh_from_db()
    return run


def seed_from(*parts: object) -> int:
    """A number that depends on nothing but `parts`."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") & LARGEST_SEED


def instance_seed(run_seed: int, scenario: str, index: int) -> int:
    """The same for every configuration of the run, so that they meet the same instances. Repeats get seeds in a row:
    scenarios whose choices take turns by seed are balanced within a cell."""
    return (seed_from("instance", run_seed, scenario) + index) & LARGEST_SEED


def sampling_seed(run_seed: int, config_position: int, scenario: str, index: int) -> int:
    return seed_from("sampling", run_seed, config_position, scenario, index)


def _write_run(request: RunRequest, plan: Plan, owner: AbstractBaseUser | None) -> Run:
    seed = request.seed if request.seed is not None else secrets.randbelow(LARGEST_SEED)
    return Run.objects.create(
        title=request.title.strip()[:200] or derived_name(plan),
        owner_id=owner.pk if owner else None,
        simulated=any(config.provider_kind == Provider.Kind.SIMULATED for config in plan.configs),
        purpose=request.purpose,
        instance_kind=request.instance_kind,
        seed=seed,
        order_seed=seed_from("order", seed),
        trials_per_cell=request.trials,
        trial_count=len(plan.cells) * first_blocks(request),
        until=request.until,
        request_cap=request.request_cap,
        token_cap=request.token_cap,
        deadline_seconds=request.deadline_seconds or settings.DEADLINE_SECONDS,
        connect_seconds=request.connect_seconds,
        read_seconds=request.read_seconds,
        jobs=request.jobs,
        request=request.to_json(),
        skipped=[{"what": item.what, "why": item.why} for item in plan.skipped],
        engine_version=engine_version(),
    )


def _write_configs(run: Run, request: RunRequest, plan: Plan) -> list[RunConfig]:
    models = Model.objects.select_related("provider").in_bulk({config.model for config in plan.configs})
    return RunConfig.objects.bulk_create(
        RunConfig(
            run=run,
            position=position,
            tool_use_mode=request.tool_use_mode,
            **_copied(models[config.model]),
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


def _copied(model: Model) -> dict[str, Any]:
    return {
        "provider": model.provider,
        "model": model,
        "provider_name": model.provider.name,
        "provider_kind": model.provider.kind,
        "model_name": model.name,
        "canonical": model.canonical,
        "mixed_upstreams": model.mixed_upstreams,
        "service": "" if model.provider.base_url else model.provider.service,
        "true_rates": model.true_rates,
    }


def _write_cells(run: Run, plan: Plan, configs: Sequence[RunConfig]) -> list[Cell]:
    until = Until.read(run.until) if run.until else None
    rivals = competitors(plan.cells)
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
            error=until.cell_error(rivals[cell.scenario]) if until and cell.applicable else None,
            position=position,
        )
        for position, cell in enumerate(plan.cells)
    )


def _trials(run: Run, plan: Plan, cells: Sequence[Cell], blocks: int) -> Iterator[Trial]:
    """Block by block: one trial of every cell, in an order drawn from the run's order seed."""
    position = 0
    for block in range(1, blocks + 1):
        for place in _order(run, plan, block):
            yield planned_trial(run, cells[place], block, position=position, applicable=plan.cells[place].applicable)
            position += 1


def _order(run: Run, plan: Plan, block: int) -> list[int]:
    order = list(range(len(plan.cells)))
    random.Random(seed_from(run.order_seed, block)).shuffle(order)
    if run.purpose == FIRST_PAGE:
        order.sort(key=lambda place: plan.configs[plan.cells[place].config].method != "constrained")
    return order


def planned_trial(run: Run, cell: Cell, index: int, *, position: int, applicable: bool) -> Trial:
    """The `index`-th repeat (from 1) of a cell, unsaved. One that is not applicable is done before it begins."""
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
        instance_seed=instance_seed(run.seed, cell.scenario, index),
        seed=sampling_seed(run.seed, config.position, cell.scenario, index),
    )
    if not applicable:
        trial.state, trial.outcome, trial.failure_class = Trial.State.DONE, Trial.Outcome.NOT_APPLICABLE, "tools_off"
        trial.sentence = "Tools are off for this model, so a tool scenario says nothing about it."
    return trial
