"""What the launch form shows of a plan that is not yet started, and a run's page of what is still to come."""

from collections.abc import Iterator
from dataclasses import replace

from toolbench.lab.metrics.tally import tally
from toolbench.lab.models import Model, Run, RunConfig
from toolbench.lab.planning.earlier_cells import Asked
from toolbench.lab.planning.forecast import Forecast, Limits, forecast
from toolbench.lab.planning.run_request import Plan, PlannedConfig, RunRequest


def forecast_plan(plan: Plan, request: RunRequest) -> Forecast | None:
    """Five queries."""
    models = Model.objects.select_related("provider").in_bulk({config.model for config in plan.configs})
    cells = sum(cell.applicable for cell in plan.cells)
    if not cells:
        return None
    least, most = plan.least_trials // len(plan.cells), plan.trials // len(plan.cells)
    asked = [
        replace(
            _asked(models[config.model], config, scenario=cell.scenario, least=least, most=most),
            requests=(cell.least_requests, cell.most_requests),
        )
        for cell in plan.cells
        if cell.applicable
        for config in (plan.configs[cell.config],)
    ]
    return forecast(asked, Limits(request.request_cap, request.token_cap, request.jobs))


def forecast_rest(run_id: int) -> Forecast | None:
    """None when nothing is to come, or nothing is known. Six queries of a run that goes on."""
    run = Run.objects.filter(pk=run_id, state__in=[Run.State.RUNNING, Run.State.PAUSED]).first()
    if run is None:
        return None
    left = Limits(_left(run.request_cap, run.requests_reserved), _left(run.token_cap, run.tokens_used), run.jobs)
    return forecast(list(_still_asked(run)), left)


def _still_asked(run: Run) -> Iterator[Asked]:
    for cell in run.cells.select_related("config__model__provider"):
        counts = tally([cell])
        waiting = counts.queued + counts.running
        open_end = cell.error is not None and not cell.decided
        most = max(waiting, run.trials_per_cell - counts.done) if open_end else waiting
        model = cell.config.model
        if most and model is not None:
            yield _asked(model, cell.config, scenario=cell.scenario, least=waiting, most=most)


def _asked(model: Model, config: PlannedConfig | RunConfig, *, scenario: str, least: int, most: int) -> Asked:
    provider = model.provider
    return Asked(
        model=model.pk,
        model_name=model.name,
        provider=provider.pk,
        kind=provider.kind,
        template=provider.template,
        places=provider.concurrency,
        method=config.method,
        strategy=config.strategy,
        scenario=scenario,
        least=least,
        most=most,
    )


def _left(cap: int | None, used: int) -> int | None:
    return None if cap is None else max(0, cap - used)
