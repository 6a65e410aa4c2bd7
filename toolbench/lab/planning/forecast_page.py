"""Estimates for the launch form and for the rest of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from toolbench.evals.prices import read_price
from toolbench.lab.confirmation import may_cost_money
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Model, Run, RunConfig
from toolbench.lab.planning.earlier_cells import PlannedTrials
from toolbench.lab.planning.forecast import Estimate, RemainingLimits, estimate_trials
from toolbench.lab.planning.run_request import Plan, PlannedConfig, RunRequest


def estimate_plan(plan: Plan, request: RunRequest) -> Estimate | None:
    """Estimate a plan, with five queries."""
    models = Model.objects.select_related("provider").in_bulk({config.model for config in plan.configs})
    cells = sum(cell.applicable for cell in plan.cells)
    if not cells:
        return None
    least, most = plan.least_trials // len(plan.cells), plan.trials // len(plan.cells)
    planned = [
        replace(
            _build_planned_trials(models[config.model], config, scenario=cell.scenario, least=least, most=most),
            requests=(cell.least_requests, cell.most_requests),
        )
        for cell in plan.cells
        if cell.applicable
        for config in (plan.configs[cell.config],)
    ]
    return estimate_trials(planned, RemainingLimits(request.request_cap, request.token_cap, request.jobs))


def estimate_remaining(run_id: int) -> Estimate | None:
    """Estimate the open trials of a run, with six queries.

    Returns:
        None where no trial is open or nothing is known.
    """
    run = Run.objects.filter(pk=run_id, state__in=[Run.State.RUNNING, Run.State.PAUSED]).first()
    if run is None:
        return None
    return estimate_trials(list(_iter_remaining_trials(run)), _compute_limits(run))


def estimate_added(run: Run, trials_by_cell: Mapping[int, int]) -> Estimate | None:
    """Estimate further trials of cells of a run, with five queries; None where nothing is known."""
    cells = run.cells.select_related("config__model__provider").filter(pk__in=trials_by_cell)
    planned = [
        _build_planned_trials(cell.config.model, cell.config, scenario=cell.scenario, least=count, most=count)
        for cell in cells
        if cell.config.model is not None and (count := trials_by_cell[cell.pk])
    ]
    return estimate_trials(planned, _compute_limits(run)) if planned else None


def _compute_limits(run: Run) -> RemainingLimits:
    requests = _compute_remaining(run.request_cap, run.requests_reserved)
    return RemainingLimits(requests, _compute_remaining(run.token_cap, run.tokens_used), run.jobs)


def _iter_remaining_trials(run: Run) -> Iterator[PlannedTrials]:
    for cell in run.cells.select_related("config__model__provider"):
        counts = tally_cells([cell])
        waiting = counts.queued + counts.running
        open_end = cell.error is not None and not cell.decided
        most = max(waiting, run.trials_per_cell - counts.done) if open_end else waiting
        model = cell.config.model
        if most and model is not None:
            yield _build_planned_trials(model, cell.config, scenario=cell.scenario, least=waiting, most=most)


def _build_planned_trials(
    model: Model, config: PlannedConfig | RunConfig, *, scenario: str, least: int, most: int
) -> PlannedTrials:
    provider = model.provider
    price = config.price if isinstance(config, RunConfig) else model.price
    return PlannedTrials(
        model=model.pk,
        model_name=model.name,
        provider=provider.pk,
        kind=provider.kind,
        template=provider.template,
        max_concurrency=provider.concurrency,
        method=config.method,
        strategy=config.strategy,
        scenario=scenario,
        least=least,
        most=most,
        price=read_price(price, provider.template, model.name),
        may_cost=may_cost_money(provider, model.name, price),
    )


def _compute_remaining(cap: int | None, used: int) -> int | None:
    return None if cap is None else max(0, cap - used)
