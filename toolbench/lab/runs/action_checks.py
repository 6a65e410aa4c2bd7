"""Functions that several actions on a run share, most of them checks, and RunActionError."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from django.db import transaction
from django.db.models import Count

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import Policy
from toolbench.lab.metrics.provider_budget import BudgetReachedError, check_provider_budgets
from toolbench.lab.models import Run, Trial
from toolbench.lab.paid_requests import may_cost_money
from toolbench.lab.planning.auto_method import list_models_to_probe
from toolbench.lab.planning.request_bounds import (
    FrozenCell,
    check_paid_requests,
    load_frozen_cells,
    resolve_frozen_policies,
)
from toolbench.lab.scenarios.catalogue import is_version_available
from toolbench.lab.worker.queue import notify_workers
from toolbench.providers.probing.probes import MAX_FIRST_USE_REQUESTS


class RunActionError(Exception):
    """Error for an action on a run that is not possible; the message says why."""


def get_run(run_id: int) -> Run:
    """Return a run that is not deleted.

    Raises:
        RunActionError: there is no such run.
    """
    run = Run.objects.filter(pk=run_id, deleted_at__isnull=True).first()
    if run is None:
        raise RunActionError(f"There is no run {run_id}.")
    return run


def get_local_run(run_id: int) -> Run:
    """Return a run that is not deleted and was not imported.

    Raises:
        RunActionError: there is no such run, or it was imported.
    """
    run = get_run(run_id)
    check_local(run)
    return run


def check_local(run: Run) -> None:
    """Check that a run was not imported.

    Raises:
        RunActionError: the run was imported.
    """
    if run.imported:
        raise RunActionError("The run was imported, so its provider is not known here: launch a new run instead.")


def describe_run(run_id: int) -> str:
    """Return the name of a run for messages.

    Raises:
        RunActionError: there is no such run.
    """
    return str(get_run(run_id))


def count_paid_probes(run: Run) -> dict[str, int]:
    """Return the maximum number of paid requests of the first-use probes of a run, by provider name."""
    paid_requests: Counter[str] = Counter()
    for model in list_models_to_probe(run):
        if may_cost_money(model.provider, model.name, model.price):
            paid_requests[model.provider.name] += MAX_FIRST_USE_REQUESTS
    return paid_requests


def check_trials(
    run: Run,
    counts_by_cell: Mapping[int, int],
    confirmed_requests: int,
    *,
    used: int,
    probes: Mapping[str, int] = MappingProxyType({}),
) -> dict[int, Policy]:
    """Check that more trials of cells may be queued, and return the policies of the cells by cell id.

    Args:
        run: the run.
        counts_by_cell: number of trials to queue by cell id.
        confirmed_requests: the confirmed number of paid requests.
        used: number of requests that already count against the run's limit.
        probes: number of paid requests of probes by provider name; the run's limit does not apply to them.

    Raises:
        RunActionError: a scenario or the engine has changed, or a provider has spent its budget for the month.
        PaidRequestsUnconfirmedError: the trials and probes may send more paid requests than were confirmed.
    """
    cells = load_frozen_cells(counts_by_cell)
    check_budgets(cells.values())
    return check_cells(run, cells, counts_by_cell, confirmed_requests, used=used, probes=probes)


def check_open_trials(run: Run, counts_by_cell: Mapping[int, int], confirmed_requests: int, *, used: int) -> None:
    """Check that the paid requests of trials that are queued already, or may follow, were confirmed.

    Budgets of providers are not checked.

    Args:
        run: the run, with its new request limit if the limit is about to change.
        counts_by_cell: number of trials by cell id.
        confirmed_requests: the confirmed number of paid requests.
        used: number of requests that already count against the run's limit.

    Raises:
        RunActionError: a scenario or the engine has changed.
        PaidRequestsUnconfirmedError: the trials may send more paid requests than were confirmed.
    """
    check_cells(run, load_frozen_cells(counts_by_cell), counts_by_cell, confirmed_requests, used=used, probes={})


def check_budgets(cells: Iterable[FrozenCell]) -> None:
    """Check that no provider of these cells has spent its budget for the month.

    Raises:
        RunActionError: a provider has spent its budget.
    """
    configs = {cell.config for cell in cells}
    providers = {config.provider for config in configs if config.provider is not None}
    try:
        check_provider_budgets(sorted(providers, key=lambda provider: provider.name))
    except BudgetReachedError as error:
        raise RunActionError(f"Nothing was queued. {error}") from error


def check_cells(
    run: Run,
    cells: Mapping[int, FrozenCell],
    counts_by_cell: Mapping[int, int],
    confirmed_requests: int,
    *,
    used: int,
    probes: Mapping[str, int],
) -> dict[int, Policy]:
    """Check trials as `check_trials` does, except for budgets of providers, and return the policies by cell id.

    The arguments are as in `check_trials`; `cells` are the cells of `counts_by_cell`.
    """
    policies = _resolve_policies(cells)
    cap_left = None if run.request_cap is None else max(0, run.request_cap - used)
    trials = [(cells[pk], policies[pk], count) for pk, count in counts_by_cell.items()]
    check_paid_requests(trials, cap_left=cap_left, confirmed_requests=confirmed_requests, probes=probes)
    return policies


def _resolve_policies(cells: Mapping[int, FrozenCell]) -> dict[int, Policy]:
    """Return the policies of cells by cell id.

    Raises:
        RunActionError: a scenario or the engine has changed.
    """
    for slug, version in dict.fromkeys((cell.scenario, cell.scenario_version) for cell in cells.values()):
        if not is_version_available(slug, version):
            raise RunActionError(f"The scenario {slug} has changed since the launch of this run: launch a new run.")
    try:
        return resolve_frozen_policies(cells)
    except PolicyError as error:
        raise RunActionError(f"The settings of the run are no longer valid: {error}") from error


def reopen_run(run_id: int) -> None:
    """Reopen a run whose trials were queued; a paused run stays paused.

    Alert rules are checked again at the end of the run. Call it in the transaction that queued the trials. Workers are
    notified after the commit.

    Raises:
        RunActionError: the run was deleted or is being cancelled.
    """
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.deleted_at is not None:
        raise RunActionError(f"There is no run {run_id}.")
    if run.state == Run.State.CANCELLING:
        raise RunActionError(f"{run} is being cancelled: wait until its last requests have ended.")
    if run.state != Run.State.PAUSED:
        Run.objects.filter(pk=run_id).update(state=Run.State.RUNNING, finished_at=None, stopped_reason="")
    transaction.on_commit(lambda: notify_run_workers(run_id))


def notify_run_workers(run_id: int) -> None:
    """Notify the workers of all providers with queued trials of the run."""
    queued = Trial.objects.filter(run_id=run_id, state=Trial.State.QUEUED, provider__isnull=False)
    notify_workers(queued.order_by().values_list("provider_id", flat=True).distinct())


def check_repeat(run: Run, confirmed_requests: int) -> None:
    """Check that a run, which was not imported, can be repeated, as `check_loaded_repeat` does."""
    counts_by_cell = count_repeated_trials(run)
    check_loaded_repeat(run, load_frozen_cells(counts_by_cell), counts_by_cell, confirmed_requests)


def check_loaded_repeat(
    run: Run, cells: Mapping[int, FrozenCell], counts_by_cell: Mapping[int, int], confirmed_requests: int
) -> None:
    """Check that a run can be repeated.

    Args:
        run: the run, which was not imported.
        cells: the cells of `counts_by_cell`, as `load_frozen_cells` returns them.
        counts_by_cell: result of `count_repeated_trials`.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        RunActionError: the provider of a cell was deleted, or as in `check_trials`.
        PaidRequestsUnconfirmedError: as in `check_trials`.
    """
    configs = (cell.config for cell in cells.values())
    deleted_provider = next((config.provider_name for config in configs if config.provider_id is None), None)
    if deleted_provider is not None:
        raise RunActionError(f"The run cannot be repeated: the provider {deleted_provider} was deleted.")
    check_budgets(cells.values())
    check_cells(run, cells, counts_by_cell, confirmed_requests, used=0, probes=count_paid_probes(run))


def count_repeated_trials(run: Run) -> dict[int, int]:
    """Return the number of trials that a repeat sends, by cell id.

    Manually added trials and those that were not applicable before their first request are left out.
    """
    planned = run.trials.filter(added_by_hand=False).order_by()
    planned = planned.exclude(outcome=Trial.Outcome.NOT_APPLICABLE, execution=0)
    return dict(planned.values_list("cell_id").annotate(trials=Count("pk")))


def check_noise_source(source: Run) -> None:
    """Check that a run can be repeated for an A/A comparison.

    Raises:
        RunActionError: it is a run of the playground.
    """
    if source.purpose == Run.PLAYGROUND:
        raise RunActionError(
            "Results leave out runs of the playground. Save the conversation as a test case, run it and repeat "
            "that run."
        )
