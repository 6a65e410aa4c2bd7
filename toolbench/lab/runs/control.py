"""Actions on a run: cancel, pause, resume, retry, add trials, repeat, label, delete.

Every action raises RunActionError if there is no such run or the action is not possible.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Case, Count, F, Max, QuerySet, Value, When
from django.db.models.functions import Now

from toolbench.engine.policy.settings import Policy
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale, recompute_immediately
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.planning.auto_method import NO_METHOD, queue_first_probes
from toolbench.lab.planning.request_bounds import is_applicable
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS
from toolbench.lab.query_params import clean_text
from toolbench.lab.runs.action_checks import (
    RunActionError,
    check_noise_source,
    check_repeat,
    check_trials,
    count_paid_probes,
    describe_run,
    get_local_run,
    get_run,
    notify_run_workers,
    reopen_run,
)
from toolbench.lab.runs.launch import build_trial
from toolbench.lab.runs.repeat import find_noise_source, repeat_for_noise, repeat_run
from toolbench.lab.runs.sequential_stopping import count_further_trials, end_rounds, reopen_rounds
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.worker.completion import cancel_queued_trials, finish_runs
from toolbench.lab.worker.queue import queue_trials

MAX_ADDED_TRIALS = 1000  # trials that are added at once to one cell
MAX_MISSING_TRIALS = 20_000  # trials that are added at once to several cells
MAX_LABEL_CHARACTERS = 80
_OPEN_STATES = (Run.State.RUNNING, Run.State.PAUSED)
# Failure classes of a wrong set-up, such as a missing key.
SETUP_FAILURE_CLASSES = tuple(row.code for row in load_classes() if row.set_up)

# Columns that a requeued trial keeps: those that are set when it is created or by users, the number of its last
# execution, and how often users retried it. All others have their default before the first execution.
_KEPT_COLUMNS = frozenset({
    "id", "run", "config", "cell", "provider", "index", "block", "position", "scenario", "scenario_version",
    "instance_kind", "instance_seed", "seed", "added_by_hand", "errors_retried", "execution", "label", "note",
})  # fmt: skip


def cancel_run(run_id: int) -> None:
    """Cancel a run.

    Queued trials end at once; worker sessions cancel trials in flight at their next check. Cells that sequential
    stopping has not decided get no further rounds, unless `resume_cancelled_run` continues them.
    """
    with transaction.atomic():
        end_rounds(run_id)
        if not _update_run(run_id, _OPEN_STATES, state=Run.State.CANCELLING, stopped_reason="Cancelled."):
            raise RunActionError(f"{describe_run(run_id)} is not running, so there is nothing to cancel.")
    cancel_queued_trials()
    recompute_all_stale(run_id)
    finish_runs()


def pause_run(run_id: int, reason: str = "") -> None:
    """Pause a run: no more trials are claimed, and trials in flight continue.

    Args:
        run_id: the run.
        reason: the reason that pages show; "" for a default.
    """
    if not _update_run(run_id, (Run.State.RUNNING,), state=Run.State.PAUSED, stopped_reason=reason or "Paused."):
        raise RunActionError(f"{describe_run(run_id)} is not running, so it cannot be paused.")


def resume_run(run_id: int) -> None:
    """Resume a paused run and notify workers. A run that has reached its request or token limit cannot be resumed."""
    run = get_run(run_id)
    check_paused(run)
    if run.request_cap is not None and run.requests_reserved >= run.request_cap:
        raise RunActionError(f"The limit of {run.request_cap} requests is reached: raise it first.")
    if run.token_cap is not None and run.tokens_used >= run.token_cap:
        raise RunActionError(f"The limit of {run.token_cap} tokens is reached: raise it first.")
    _update_run(run_id, (Run.State.PAUSED,), state=Run.State.RUNNING, stopped_reason="")
    transaction.on_commit(lambda: notify_run_workers(run_id))


def check_paused(run: Run) -> None:
    """Check that a run is paused.

    Raises:
        RunActionError: the run is not paused.
    """
    if run.state != Run.State.PAUSED:
        raise RunActionError(f"{run} is not paused.")


def retry_errored_trials(run_id: int, *, confirmed_requests: int = 0) -> int:
    """Requeue trials that ended with an infrastructure error, and return their number.

    Trials of deleted providers are left out. Steps of the requeued trials are kept, like those of a lost execution.

    Args:
        run_id: the run.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        PaidRequestsUnconfirmedError: the trials may send more paid requests than were confirmed.
    """
    with transaction.atomic():
        run = get_local_run(run_id)
        errored = run.trials.filter(state=Trial.State.DONE, outcome=Trial.Outcome.INFRA, provider__isnull=False)
        rows = _lock_trials(errored)
        if not rows:
            raise RunActionError(f"{describe_run(run_id)} has no trial with an infrastructure error to retry.")
        check_trials(run, Counter(cell_id for _, cell_id in rows), confirmed_requests, used=run.requests_reserved)
        _requeue_retried([trial_id for trial_id, _ in rows])
        recompute_immediately(cell_id for _, cell_id in rows)
        reopen_run(run_id)
    return len(rows)


def _lock_trials(trials: QuerySet[Trial]) -> list[tuple[int, int]]:
    """Lock these trials in id order; return (trial id, cell id) of each."""
    return list(trials.select_for_update(of=("self",), no_key=True).order_by("pk").values_list("pk", "cell_id"))


def resume_cancelled_run(run_id: int, *, confirmed_requests: int = 0) -> int:
    """Requeue the cancelled trials of a run, and return their number.

    Manually added trials and trials of deleted providers are left out. Each requeued trial gets a new execution.
    Steps of an earlier execution are kept, and its requests and tokens still count against the run's limits. Sequential
    stopping continues.

    Args:
        run_id: the run.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        RunActionError: the run has not ended, or has no trial to resume.
        PaidRequestsUnconfirmedError: the trials, later rounds and first-use probes may send more paid requests than
            were confirmed.
    """
    with transaction.atomic():
        run = get_local_run(run_id)
        if run.state not in Run.ENDED:
            raise RunActionError(f"{describe_run(run_id)} has not ended, so it has no cancelled trials to resume.")
        cancelled = run.trials.filter(outcome=Trial.Outcome.CANCELLED, added_by_hand=False, provider__isnull=False)
        rows = _lock_trials(cancelled)
        if not rows:
            raise RunActionError(f"{describe_run(run_id)} has no cancelled trial that could be resumed.")
        counts_by_cell = Counter(cell_id for _, cell_id in rows)
        reopen_rounds(run_id)
        max_trials_by_cell = counts_by_cell + count_further_trials(run)
        check_trials(
            run, max_trials_by_cell, confirmed_requests, used=run.requests_reserved, probes=count_paid_probes(run)
        )
        Trial.objects.filter(pk__in=[trial_id for trial_id, _ in rows]).update(**_get_blank_columns())
        recompute_immediately(counts_by_cell)
        queue_first_probes(run)
        reopen_run(run_id)
    return len(rows)


def add_trials(run_id: int, cell_id: int, count: int, *, confirmed_requests: int = 0) -> int:
    """Add `count` repeats to a cell and return their number.

    The repeats are marked as added manually, since users add them after they have seen results.

    Args:
        run_id: the run.
        cell_id: the cell.
        count: number of repeats.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        PaidRequestsUnconfirmedError: the trials may send more paid requests than were confirmed.
    """
    if not 1 <= count <= MAX_ADDED_TRIALS:
        raise RunActionError(f"Between 1 and {MAX_ADDED_TRIALS} trials can be added at once.")
    run = get_local_run(run_id)
    with transaction.atomic():
        _lock_cells(run, [cell_id])
        _queue_added_trials(run, {cell_id: count}, confirmed_requests)
    return count


def add_missing_trials(
    run_id: int, cell_ids: Collection[int], target: int, *, shown: int = MAX_MISSING_TRIALS, confirmed_requests: int = 0
) -> int:
    """Add trials to each of these cells until it has `target` trials; return the number of added trials.

    Either all missing trials are added or none. Added trials are marked as added manually.

    Args:
        run_id: the run.
        cell_ids: the cells.
        target: wanted number of trials in each cell, without cancelled ones.
        shown: number of missing trials that the user was shown; if more are missing now, none is added.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        RunActionError: no trial is missing, or more are missing than were shown or may be added at once.
        PaidRequestsUnconfirmedError: the trials may send more paid requests than were confirmed.
    """
    if not 1 <= target <= MAX_CELL_TRIALS:
        raise RunActionError(f"The target is 1 to {MAX_CELL_TRIALS:,} trials in each cell; nothing was added.")
    run = get_local_run(run_id)
    with transaction.atomic():
        _lock_cells(run, cell_ids)
        counts = count_trials_by_cell(run_id)
        missing = {pk: target - counts.get(pk, 0) for pk in cell_ids if counts.get(pk, 0) < target}
        if not missing:
            raise RunActionError(f"None of the chosen cells has fewer than {target:,} trials; nothing was added.")
        limit = min(shown, MAX_MISSING_TRIALS)
        if (total := sum(missing.values())) > limit:
            raise RunActionError(
                f"{total:,} trials are missing, more than the {limit:,} that were shown or may be added at once. "
                "Nothing was added: read the estimate again."
            )
        _queue_added_trials(run, missing, confirmed_requests)
    return total


def count_trials_by_cell(run_id: int) -> dict[int, int]:
    """Return the number of trials that were not cancelled, by cell id; cells without any have no entry."""
    trials = Trial.objects.filter(run_id=run_id).exclude(outcome=Trial.Outcome.CANCELLED).order_by()
    return dict(trials.values_list("cell_id").annotate(trials=Count("pk")))


def _lock_cells(run: Run, cell_ids: Collection[int]) -> None:
    """Lock cells of the run, then the run: cells are always locked before runs.

    Raises:
        RunActionError: the run has no such cell.
    """
    if run.cells.filter(pk__in=cell_ids).count() != len(set(cell_ids)):
        raise RunActionError(f"{describe_run(run.pk)} has no such cell.")
    mark_stale(cell_ids)  # locks the cells
    Run.objects.select_for_update().get(pk=run.pk)


def _queue_added_trials(run: Run, counts_by_cell: Mapping[int, int], confirmed_requests: int) -> None:
    """Queue more trials of cells of a run.

    The new trials are placed after all others of the run, in the order of their repeat numbers. Call the function in
    the transaction that locked the cells.

    Raises:
        RunActionError: a provider was deleted, no method can be used with a configuration, or as in `check_trials`.
        PaidRequestsUnconfirmedError: as in `check_trials`.
    """
    cells = Cell.objects.select_related("run", "config").in_bulk(counts_by_cell)
    for cell in cells.values():
        if cell.config.provider_id is None:
            raise RunActionError(f"The provider {cell.config.provider_name} was deleted, so nothing can be added.")
        if cell.config.method == NO_METHOD:
            raise RunActionError(f"{cell.config}: no method can be used, so nothing can be added. Launch a new run.")
    policies = check_trials(run, counts_by_cell, confirmed_requests, used=run.requests_reserved)
    trials = [
        trial for pk, count in counts_by_cell.items() for trial in _build_added_trials(cells[pk], count, policies[pk])
    ]
    last_position = run.trials.aggregate(last=Max("position"))["last"] or 0
    for position, trial in enumerate(sorted(trials, key=lambda trial: trial.index), last_position + 1):
        trial.position = position
    queue_trials(trials)
    recompute_immediately(counts_by_cell)
    Run.objects.filter(pk=run.pk).update(trial_count=F("trial_count") + len(trials))
    reopen_run(run.pk)


def start_repeat(run_id: int, *, owner: AbstractBaseUser | None, confirmed_requests: int = 0) -> Run:
    """Launch a repeat of the run with its frozen settings and the same seeds.

    Args:
        run_id: the run to repeat.
        owner: owner of the repeat; None for none.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        PaidRequestsUnconfirmedError: the repeat may send more paid requests than were confirmed.
    """
    run = get_local_run(run_id)
    check_repeat(run, confirmed_requests)
    return repeat_run(run, owner=owner)


def start_noise_repeat(run_id: int, *, owner: AbstractBaseUser | None, confirmed_requests: int = 0) -> Run:
    """Launch a repeat of the run with new sampling seeds, for an A/A comparison.

    If the run is such a repeat itself, the original run is repeated.

    Args:
        run_id: the run to repeat.
        owner: owner of the repeat; None for none.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        RunActionError: the repeated run is a run of the playground, or the provider of a cell was deleted, or as in
            `check_trials`.
        PaidRequestsUnconfirmedError: the repeat may send more paid requests than were confirmed.
    """
    source = find_noise_source(get_run(run_id))
    check_noise_source(source)
    source = get_local_run(source.pk)
    check_repeat(source, confirmed_requests)
    return repeat_for_noise(source, owner=owner)


def set_label(run_id: int, text: str) -> None:
    """Set the label of a run; remove it if `text` is ""."""
    get_run(run_id)
    Run.objects.filter(pk=run_id).update(label=clean_text(text, MAX_LABEL_CHARACTERS))


def set_body_retention(run_id: int, *, keeps_bodies: bool) -> None:
    """Set whether retention keeps the bodies of a run. Bodies that it has removed are not restored."""
    get_run(run_id)
    Run.objects.filter(pk=run_id).update(keeps_bodies=keeps_bodies)


def delete_run(run_id: int) -> None:
    """Hide the run on all pages and cancel it if it has not ended."""
    get_run(run_id)
    cancelled = When(state__in=_OPEN_STATES, then=Value(Run.State.CANCELLING))
    Run.objects.filter(pk=run_id).update(deleted_at=Now(), state=Case(cancelled, default=F("state")))
    cancel_queued_trials()
    finish_runs()


def _update_run(run_id: int, states: Collection[str], **values: str) -> bool:
    """Update a run if its state is one of `states`, with one statement; return whether the run was updated."""
    return Run.objects.filter(pk=run_id, deleted_at__isnull=True, state__in=states).update(**values) == 1


def _build_added_trials(cell: Cell, count: int, policy: Policy) -> list[Trial]:
    """Build the next `count` repeats of the cell, unsaved; the caller sets their positions."""
    last_index = cell.trials.aggregate(last=Max("index"))["last"] or 0
    applicable = is_applicable(policy, load_scenario(cell.scenario, cell.scenario_version))
    trials = [
        build_trial(cell.run, cell, last_index + number, position=0, applicable=applicable)
        for number in range(1, count + 1)
    ]
    for trial in trials:
        trial.added_by_hand = True
    return trials


def _requeue_retried(trial_ids: list[int]) -> None:
    """Requeue trials with the columns of a new trial, except _KEPT_COLUMNS.

    `errors_retried` is increased, so that the trial stays a failure in end-to-end success. It is not increased if a
    wrong set-up, such as a missing key, prevented every answer, since such an error says nothing about the endpoint.
    """
    setup_error = When(failure_class__in=SETUP_FAILURE_CLASSES, answered_turns=0, then=F("errors_retried"))
    errors_retried = Case(setup_error, default=F("errors_retried") + 1)
    Trial.objects.filter(pk__in=trial_ids).update(**_get_blank_columns(), errors_retried=errors_retried)


def _get_blank_columns() -> dict[str, Any]:
    """Return the default values of the columns except _KEPT_COLUMNS, and the present time as `queued_at`."""
    fields = (field for field in Trial._meta.concrete_fields if field.name not in _KEPT_COLUMNS)
    return {field.name: field.get_default() for field in fields} | {"queued_at": Now()}
