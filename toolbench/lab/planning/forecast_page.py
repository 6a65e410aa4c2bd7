"""Estimates for a plan, for the open trials of a run, and for trials to add to a run."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Model, Run, RunConfig
from toolbench.lab.paid_requests import find_model_price, may_cost_money
from toolbench.lab.planning.earlier_cells import PlannedTrials
from toolbench.lab.planning.forecast import Estimate, RemainingLimits, estimate_trials
from toolbench.lab.planning.request_bounds import FrozenCell, load_frozen_cells
from toolbench.lab.planning.run_request import Plan, PlannedConfig, RunRequest


def estimate_plan(plan: Plan, request: RunRequest) -> Estimate | None:
    """Estimate a plan, with up to four queries.

    Returns:
        The estimate; None if no cell is applicable, or as in `estimate_trials`.
    """
    models = Model.objects.select_related("provider").in_bulk({config.model for config in plan.configs})
    if not any(cell.applicable for cell in plan.cells):
        return None
    min_trials, max_trials = plan.least_trials // len(plan.cells), plan.trials // len(plan.cells)
    planned = []
    for cell in plan.cells:
        if cell.applicable:
            config = plan.configs[cell.config]
            trials = _build_planned_trials(models[config.model], config, cell.scenario, min_trials, max_trials)
            planned.append(replace(trials, requests=(cell.least_requests, cell.most_requests)))
    return estimate_trials(planned, RemainingLimits(request.request_cap, request.token_cap, request.jobs))


def estimate_remaining(run: Run) -> Estimate | None:
    """Estimate the open trials of a run, with up to four queries.

    Returns:
        The estimate; None if the run is neither running nor paused, no trial is open or may still be added, or as in
        `estimate_trials`.
    """
    if run.state not in (Run.State.RUNNING, Run.State.PAUSED):
        return None
    return estimate_trials(list(_iter_remaining_trials(run)), _compute_limits(run))


def estimate_added(run: Run, counts_by_cell: Mapping[int, int]) -> Estimate | None:
    """Estimate trials to add to cells of a run, with up to four queries.

    Cells whose model was deleted are left out.

    Args:
        run: the run.
        counts_by_cell: number of trials to add by cell id.

    Returns:
        The estimate; None if there is nothing to add, or as in `estimate_trials`.
    """
    return _estimate_cells(load_frozen_cells(counts_by_cell), counts_by_cell, _compute_limits(run))


def estimate_repeat(run: Run, cells: Mapping[int, FrozenCell], counts_by_cell: Mapping[int, int]) -> Estimate | None:
    """Estimate a repeat of a run, which is a new run with the same limits, with up to three queries.

    Args:
        run: the run.
        cells: the cells of `counts_by_cell`, as `load_frozen_cells` returns them.
        counts_by_cell: number of trials by cell id.

    Returns:
        The estimate; None as in `estimate_added`.
    """
    return _estimate_cells(cells, counts_by_cell, RemainingLimits(run.request_cap, run.token_cap, run.jobs))


def _estimate_cells(
    cells: Mapping[int, FrozenCell], counts_by_cell: Mapping[int, int], limits: RemainingLimits
) -> Estimate | None:
    planned = [
        _build_planned_trials(model, cells[pk].config, cells[pk].scenario, count, count)
        for pk, count in counts_by_cell.items()
        if count and (model := cells[pk].config.model) is not None
    ]
    return estimate_trials(planned, limits) if planned else None


def _compute_limits(run: Run) -> RemainingLimits:
    requests = _compute_remaining(run.request_cap, run.requests_reserved)
    return RemainingLimits(requests, _compute_remaining(run.token_cap, run.tokens_used), run.jobs)


def _iter_remaining_trials(run: Run) -> Iterator[PlannedTrials]:
    """Yield the open trials of each cell.

    For a cell that sequential stopping has not decided, the maximum includes trials that may still be added. Cells
    whose maximum is 0, and cells whose model was deleted, are left out.
    """
    for cell in run.cells.select_related("config__model__provider"):
        tally = tally_cells([cell])
        open_trials = tally.queued + tally.running
        is_undecided = cell.error is not None and not cell.decided
        max_trials = max(open_trials, run.trials_per_cell - tally.ended) if is_undecided else open_trials
        model = cell.config.model
        if max_trials and model is not None:
            yield _build_planned_trials(model, cell.config, cell.scenario, open_trials, max_trials)


def _build_planned_trials(
    model: Model, config: PlannedConfig | RunConfig, scenario: str, min_trials: int, max_trials: int
) -> PlannedTrials:
    provider = model.provider
    price = config.price if isinstance(config, RunConfig) else model.price
    return PlannedTrials(
        model=model.pk,
        model_name=model.name,
        provider=provider.pk,
        kind=provider.kind,
        max_concurrency=provider.concurrency,
        method=config.method,
        strategy=config.strategy,
        scenario=scenario,
        min_trials=min_trials,
        max_trials=max_trials,
        price=find_model_price(provider, model.name, price),
        may_cost=may_cost_money(provider, model.name, price),
    )


def _compute_remaining(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
