"""Actions on a run: cancel, pause, resume, raise its limits, retry, add trials, repeat, label, delete."""

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Case, Count, F, Max, Value, When
from django.db.models.functions import Now

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import Policy
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.confirmation import may_cost_money
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale, recompute_immediately
from toolbench.lab.metrics.provider_budget import BudgetReachedError, check_provider_budgets
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.planning.auto_method import list_models_to_probe, queue_first_probes
from toolbench.lab.planning.request_bounds import check_paid_requests, is_applicable, resolve_frozen_policy
from toolbench.lab.planning.run_request import MAX_CAP
from toolbench.lab.query_params import clean_text
from toolbench.lab.runs import repeat as resending
from toolbench.lab.runs.launch import build_trial
from toolbench.lab.scenarios.catalogue import is_version_available, load_scenario
from toolbench.lab.worker.completion import cancel_queued_trials, finish_runs
from toolbench.lab.worker.queue import notify_workers, queue_trials
from toolbench.lab.worker.request_budget import correct_request_counts
from toolbench.providers.probing.probes import MAX_FIRST_USE_REQUESTS

MAX_ADDED_TRIALS = 1000  # to one cell
MAX_TARGET_TRIALS = 2000  # of a cell, as in the form for a new run
MAX_MISSING_TRIALS = 20_000  # to several cells at once
_OPEN_STATES = (Run.State.RUNNING, Run.State.PAUSED)
SETUP_FAILURE_CLASSES = tuple(row.code for row in load_classes() if row.set_up)

# What a trial is, whatever came of it; every other column is blank before it is tried.
_PLANNED_COLUMNS = frozenset({
    "id", "run", "config", "cell", "provider", "index", "block", "position", "scenario", "scenario_version",
    "instance_kind", "instance_seed", "seed", "added_by_hand", "errors_retried", "execution", "queued_at",
    "label", "note",
})  # fmt: skip


class RunActionError(Exception):
    """An action that is not possible now; the text says why."""


def cancel_run(run_id: int) -> None:
    """Cancel a run: queued trials end at once, trials in flight within two seconds."""
    if not _update_run(run_id, _OPEN_STATES, state=Run.State.CANCELLING, stopped_reason="Cancelled."):
        raise RunActionError(f"{_describe_run(run_id)} is not running, so there is nothing to cancel.")
    cancel_queued_trials()
    recompute_all_stale(run_id)
    finish_runs()


def pause_run(run_id: int, reason: str = "") -> None:
    """Pause a run: no more trials are claimed; trials in flight run to their end."""
    if not _update_run(run_id, (Run.State.RUNNING,), state=Run.State.PAUSED, stopped_reason=reason or "Paused."):
        raise RunActionError(f"{_describe_run(run_id)} is not running, so it cannot be paused.")


def resume_run(run_id: int) -> None:
    """Resume a paused run."""
    run = _get_run(run_id)
    if run.state != Run.State.PAUSED:
        raise RunActionError(f"{_describe_run(run_id)} is not paused.")
    if run.request_cap is not None and run.requests_reserved >= run.request_cap:
        raise RunActionError(f"The cap of {run.request_cap} requests is reached: raise it first.")
    if run.token_cap is not None and run.tokens_used >= run.token_cap:
        raise RunActionError(f"The cap of {run.token_cap} tokens is reached: raise it first.")
    _update_run(run_id, (Run.State.PAUSED,), state=Run.State.RUNNING, stopped_reason="")
    transaction.on_commit(lambda: _notify_run_workers(run_id))


def raise_caps(run_id: int, *, request_cap: int | None, token_cap: int | None) -> None:
    """Set both limits, None for no limit; the run stays paused. Stored requests and tokens count as used."""
    recompute_all_stale(run_id)
    correct_request_counts(run_id)
    run = _get_run(run_id)
    for name, cap, used in (("requests", request_cap, run.requests_reserved), ("tokens", token_cap, run.tokens_used)):
        if cap is not None and cap <= used:
            raise RunActionError(f"{used} {name} are used already: the cap has to be higher.")
        if cap is not None and cap > MAX_CAP:
            raise RunActionError(f"A cap is at most {MAX_CAP:,} {name}; leave it empty for none. Nothing was changed.")
    Run.objects.filter(pk=run_id).update(request_cap=request_cap, token_cap=token_cap)


@transaction.atomic
def raise_caps_and_resume(run_id: int, *, request_cap: int | None, token_cap: int | None) -> None:
    """Set both limits of a paused run and resume it; if either is refused, neither is done."""
    raise_caps(run_id, request_cap=request_cap, token_cap=token_cap)
    resume_run(run_id)


def retry_errored_trials(run_id: int, *, agreed: int = 0) -> int:
    """Queue all trials again that ended with an infrastructure error and whose provider exists; return their number.

    Their earlier steps stay, as steps of a lost execution.

    Raises:
        ConfirmationNeededError: they may send more paid requests than are sent without confirmation, and than were
            `agreed` to.
    """
    with transaction.atomic():
        run = _get_local_run(run_id)
        errored = run.trials.filter(state=Trial.State.DONE, outcome=Trial.Outcome.INFRA, provider__isnull=False)
        chosen = list(errored.select_for_update(of=("self",), no_key=True).order_by("pk").values_list("pk", "cell_id"))
        if not chosen:
            raise RunActionError(f"{_describe_run(run_id)} has no errored trial that could be tried again.")
        _check_trials(run, Counter(cell for _, cell in chosen), agreed, used=run.requests_reserved)
        _requeue_trials([pk for pk, _ in chosen])
        recompute_immediately(cell for _, cell in chosen)
        _reopen_run(run_id)
    return len(chosen)


def resume_cancelled_run(run_id: int, *, agreed: int = 0) -> int:
    """Queue the planned trials again that were cancelled and whose provider exists; return their number.

    Each gets a new execution. Requests, tokens and steps of an earlier execution stay counted; finished trials and
    trials that were added manually are not changed.

    Raises:
        RunActionError: the run has not ended, or has no such trial.
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    with transaction.atomic():
        run = _get_local_run(run_id)
        if run.state not in Run.ENDED:
            raise RunActionError(f"{_describe_run(run_id)} has not ended, so it has no cancelled trials to resume.")
        cancelled = run.trials.filter(outcome=Trial.Outcome.CANCELLED, added_by_hand=False, provider__isnull=False)
        chosen = list(
            cancelled.select_for_update(of=("self",), no_key=True).order_by("pk").values_list("pk", "cell_id")
        )
        if not chosen:
            raise RunActionError(f"{_describe_run(run_id)} has no cancelled trial that could be resumed.")
        trials_by_cell = Counter(cell for _, cell in chosen)
        _check_trials(run, trials_by_cell, agreed, used=run.requests_reserved, probes=_count_paid_probes(run))
        Trial.objects.filter(pk__in=[pk for pk, _ in chosen]).update(**_list_blank_columns())
        recompute_immediately(trials_by_cell)
        queue_first_probes(run)
        _reopen_run(run_id)
    return len(chosen)


def add_trials(run_id: int, cell_id: int, count: int, *, agreed: int = 0) -> int:
    """Add repeats to a cell after its results were seen, and return their number.

    They are marked, since a decision must not rest on them alone.

    Raises:
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    if not 1 <= count <= MAX_ADDED_TRIALS:
        raise RunActionError(f"Between 1 and {MAX_ADDED_TRIALS} trials can be added at once.")
    run = _get_local_run(run_id)
    with transaction.atomic():
        _lock_cells(run, [cell_id])
        _queue_added_trials(run, {cell_id: count}, agreed)
    return count


def add_missing_trials(
    run_id: int, cell_ids: Collection[int], target: int, *, shown: int = MAX_MISSING_TRIALS, agreed: int = 0
) -> int:
    """Add to each of these cells the trials that it lacks to `target`, all or none; return their number.

    They are marked, as those of `add_trials`. Sent twice, the second request adds none. `shown` is the number that the
    user has seen: no more are added.

    Raises:
        RunActionError: nothing is missing, or it cannot be added.
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    if not 1 <= target <= MAX_TARGET_TRIALS:
        raise RunActionError(f"A cell can get 1 to {MAX_TARGET_TRIALS:,} trials in this way; nothing was added.")
    run = _get_local_run(run_id)
    with transaction.atomic():
        _lock_cells(run, cell_ids)
        counts = count_trials_by_cell(run_id)
        missing = {pk: target - counts.get(pk, 0) for pk in cell_ids if counts.get(pk, 0) < target}
        if not missing:
            raise RunActionError(f"None of the chosen cells has fewer than {target:,} trials; nothing was added.")
        limit = min(shown, MAX_MISSING_TRIALS)
        if (total := sum(missing.values())) > limit:
            raise RunActionError(
                f"These are {total:,} trials, more than the {limit:,} that were shown or may be added at once. "
                "Nothing was added: read the estimate again."
            )
        _queue_added_trials(run, missing, agreed)
    return total


def count_trials_by_cell(run_id: int) -> dict[int, int]:
    """Return the trials of each cell of a run that has any, queued ones too and cancelled ones left out."""
    trials = Trial.objects.filter(run_id=run_id).exclude(outcome=Trial.Outcome.CANCELLED).order_by()
    return dict(trials.values_list("cell_id").annotate(trials=Count("pk")))


def _lock_cells(run: Run, cell_ids: Collection[int]) -> None:
    """Lock cells of the run and then the run, in this order as everywhere.

    Raises:
        RunActionError: the run has no such cell.
    """
    if run.cells.filter(pk__in=cell_ids).count() != len(set(cell_ids)):
        raise RunActionError(f"{_describe_run(run.pk)} has no such cell.")
    mark_stale(cell_ids)
    Run.objects.select_for_update().get(pk=run.pk)


def _queue_added_trials(run: Run, trials_by_cell: Mapping[int, int], agreed: int) -> None:
    """Queue more trials of cells of a run, in turn. Call it in the transaction that locked them."""
    cells = Cell.objects.select_related("run", "config").in_bulk(trials_by_cell)
    for cell in cells.values():
        if cell.config.provider_id is None:
            raise RunActionError(f"The provider {cell.config.provider_name} was deleted, so nothing can be added.")
    policies = _check_trials(run, trials_by_cell, agreed, used=run.requests_reserved)
    added = [
        trial for pk, count in trials_by_cell.items() for trial in _build_added_trials(cells[pk], count, policies[pk])
    ]
    end = run.trials.aggregate(last=Max("position"))["last"] or 0
    for position, trial in enumerate(sorted(added, key=lambda trial: trial.index), end + 1):
        trial.position = position
    queue_trials(added)
    recompute_immediately(trials_by_cell)
    Run.objects.filter(pk=run.pk).update(trial_count=F("trial_count") + len(added))
    _reopen_run(run.pk)


def start_repeat(run_id: int, *, owner: AbstractBaseUser | None, agreed: int = 0) -> Run:
    """Launch the run again with its frozen settings and the same seeds.

    Raises:
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    return resending.repeat_run(_check_repeatable(run_id, agreed), owner=owner)


def start_noise_repeat(run_id: int, *, owner: AbstractBaseUser | None, agreed: int = 0) -> Run:
    """Launch the run again with new sampling seeds: an A/A comparison.

    Raises:
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    return resending.repeat_for_noise(_check_repeatable(run_id, agreed), owner=owner)


def _check_repeatable(run_id: int, agreed: int) -> Run:
    run = _get_local_run(run_id)
    gone = run.configs.filter(provider=None).values_list("provider_name", flat=True).first()
    if gone is not None:
        raise RunActionError(f"It cannot be repeated: the provider {gone} was deleted.")
    planned = run.trials.filter(added_by_hand=False).exclude(outcome=Trial.Outcome.NOT_APPLICABLE)
    trials_by_cell = Counter(planned.values_list("cell_id", flat=True))
    _check_trials(run, trials_by_cell, agreed, used=0, probes=_count_paid_probes(run))
    return run


def _count_paid_probes(run: Run) -> dict[str, int]:
    """Return how many paid requests the probes for a copy of the run may send, by the provider's name."""
    paid: Counter[str] = Counter()
    for model in list_models_to_probe(run):
        if may_cost_money(model.provider, model.name, model.price):
            paid[model.provider.name] += MAX_FIRST_USE_REQUESTS
    return paid


def set_label(run_id: int, text: str) -> None:
    """Set the label of a run; "" removes it."""
    _get_run(run_id)
    Run.objects.filter(pk=run_id).update(label=clean_text(text, 80))


def delete_run(run_id: int) -> None:
    """Hide the run on all pages and cancel its open trials."""
    _get_run(run_id)
    open_ones = When(state__in=_OPEN_STATES, then=Value(Run.State.CANCELLING))
    Run.objects.filter(pk=run_id).update(deleted_at=Now(), state=Case(open_ones, default=F("state")))
    cancel_queued_trials()
    finish_runs()


def _get_run(run_id: int) -> Run:
    run = Run.objects.filter(pk=run_id, deleted_at__isnull=True).first()
    if run is None:
        raise RunActionError(f"There is no run {run_id}.")
    return run


def _get_local_run(run_id: int) -> Run:
    """Return a run that was tried here.

    Raises:
        RunActionError: there is no such run, or it was imported.
    """
    run = _get_run(run_id)
    if run.imported:
        raise RunActionError("It was tried elsewhere, by a provider that is not known here: launch a run of your own.")
    return run


def _describe_run(run_id: int) -> str:
    return str(_get_run(run_id))


def _update_run(run_id: int, states: Collection[str], **values: str) -> bool:
    """Update a run if it is in one of the states, with one statement; return whether it was."""
    return Run.objects.filter(pk=run_id, deleted_at__isnull=True, state__in=states).update(**values) == 1


def _check_trials(
    run: Run,
    trials_by_cell: Mapping[int, int],
    agreed: int,
    *,
    used: int,
    probes: Mapping[str, int] = MappingProxyType({}),
) -> dict[int, Policy]:
    """Check that `trials_by_cell` more trials of these cells may run, and return their policies by cell id.

    `used` requests count against the run's limit already; `probes` are paid requests above the limit, by the provider's
    name.

    Raises:
        RunActionError: a scenario or the engine has changed, or a provider has spent its budget for the month.
        ConfirmationNeededError: as `retry_errored_trials`.
    """
    cells = Cell.objects.select_related("config__provider").in_bulk(trials_by_cell)
    for cell in cells.values():
        if not is_version_available(cell.scenario, cell.scenario_version):
            raise RunActionError(f"The scenario {cell.scenario} is not as it was then: launch a new run from the form.")
    try:
        policies = {pk: resolve_frozen_policy(cell) for pk, cell in cells.items()}
    except PolicyError as error:
        raise RunActionError(f"Its settings are not taken any more: {error}") from error
    try:
        check_provider_budgets(cell.config.provider_id for cell in cells.values() if cell.config.provider_id)
    except BudgetReachedError as error:
        raise RunActionError(f"Nothing was queued. {error}") from error
    cap_left = None if run.request_cap is None else max(0, run.request_cap - used)
    trials = [(cells[pk], policies[pk], count) for pk, count in trials_by_cell.items()]
    check_paid_requests(trials, cap_left=cap_left, agreed=agreed, probes=probes)
    return policies


def _build_added_trials(cell: Cell, count: int, policy: Policy) -> list[Trial]:
    """Build the next repeats of the cell; their positions are set later."""
    last = cell.trials.aggregate(last=Max("index"))["last"] or 0
    applicable = is_applicable(policy, load_scenario(cell.scenario, cell.scenario_version))
    trials = [
        build_trial(cell.run, cell, last + number, position=0, applicable=applicable) for number in range(1, count + 1)
    ]
    for trial in trials:
        trial.added_by_hand = True
    return trials


def _requeue_trials(trial_ids: list[int]) -> None:
    """Queue trials as they were before their first execution; the execution number stays.

    Each is marked as retried: what the first execution delivered stays its delivered result. A trial that a wrong setup
    kept from any answer is not marked, since it says nothing about the endpoint.
    """
    own_fault = When(failure_class__in=SETUP_FAILURE_CLASSES, answered_turns=0, then=F("errors_retried"))
    retried = Case(own_fault, default=F("errors_retried") + 1)
    Trial.objects.filter(pk__in=trial_ids).update(**_list_blank_columns(), errors_retried=retried)


def _list_blank_columns() -> dict[str, Any]:
    """Return the columns that a trial gets before its first execution, with their values then."""
    fields = (field for field in Trial._meta.concrete_fields if field.name not in _PLANNED_COLUMNS)
    return {field.name: field.get_default() for field in fields}


def _reopen_run(run_id: int) -> None:
    """Reopen a run that has open trials again; a paused run stays paused.

    Raises:
        RunActionError: the run was deleted or is being cancelled; the transaction is undone.
    """
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.deleted_at is not None:
        raise RunActionError(f"There is no run {run_id}.")
    if run.state == Run.State.CANCELLING:
        raise RunActionError(f"{run} is being cancelled: wait until its last requests have ended.")
    if run.state != Run.State.PAUSED:
        Run.objects.filter(pk=run_id).update(state=Run.State.RUNNING, finished_at=None, stopped_reason="")
    transaction.on_commit(lambda: _notify_run_workers(run_id))


def _notify_run_workers(run_id: int) -> None:
    waiting = Trial.objects.filter(run_id=run_id, state=Trial.State.QUEUED, provider__isnull=False)
    notify_workers(waiting.order_by().values_list("provider_id", flat=True).distinct())
