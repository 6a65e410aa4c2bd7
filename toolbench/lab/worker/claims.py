"""Claims of queued trials of one provider, leases, requeueing and slots.

All times come from the clock of the database. Each statement that changes a running trial names its lease. If the lease
is lost, the statement changes nothing and returns no row for the trial.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from toolbench.engine.events import OmittedParameter
from toolbench.engine.light_dataclass import light
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.sql import load_statement
from toolbench.lab.worker import database_thread
from toolbench.lab.worker.database_thread import open_pipeline
from toolbench.lab.worker.request_budget import (
    ENABLE_SYNCHRONOUS_COMMIT,
    MIN_SPARE_REQUESTS,
    REQUESTS_RESERVED_AT_CLAIM,
    reserve_at_claim,
)
from toolbench.lab.worker.slots import SlotHints

NO_HINTS = SlotHints()
# Number of losses of the local server, or of the lease, after which a trial runs alone: it may be the cause.
ISOLATE_AFTER_LOSSES = 3
MAX_LEASE_LOSSES = 10  # number of losses of the lease after which a trial ends
_SLOT_LOCK_NAMESPACE = 7_204_301  # namespace of the advisory locks that guard a provider's slots

_LOCK_SLOTS = "SELECT pg_advisory_xact_lock(%s, %s::int)"

CONCURRENCY_LIMIT = load_statement("worker/concurrency_limit")

CLAIM_STATEMENT = load_statement("worker/claim_trials", limit=CONCURRENCY_LIMIT)

_HAS_QUEUED_TRIALS = """
SELECT EXISTS (SELECT 1 FROM lab_run AS run JOIN lab_provider AS provider ON provider.id = %s
    WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_RENEW_LEASES = load_statement("worker/renew_leases")

_REQUEUE = load_statement("worker/requeue")

_RELEASE_SLOT = "UPDATE lab_trial SET backing_off = true WHERE id = %s AND lease = %s AND state = 'running'"
_ACQUIRE_SLOT = "UPDATE lab_trial SET backing_off = false WHERE id = %s AND lease = %s AND state = 'running'"
_HAS_FREE_SLOT = load_statement("worker/has_free_slot", limit=CONCURRENCY_LIMIT)


@light(frozen=True, slots=True)
class ClaimedTrial:
    """A trial that this worker may run and store until its lease ends.

    Attributes:
        execution: number of this execution of the trial, from 1.
        instance_seed: seed from which its instance is drawn.
        seed: seed that its requests send if the provider supports seeds.
        in_flight: number of trials of its provider in flight after the claim.
        server_losses: how often its local server died during the trial, in all executions.
        waits_for_slot: whether it was claimed ahead and holds no slot yet.
        reserved_requests: number of its requests that the claim counted against the limits of the run.
        omitted_parameters: parameters that its model refused earlier in this run; they are not sent.
    """

    id: int
    run_id: int
    config_id: int
    cell_id: int
    execution: int
    lease: UUID
    scenario: str
    scenario_version: int
    instance_kind: str
    instance_seed: int
    seed: int
    in_flight: int = 1
    server_losses: int = 0
    waits_for_slot: bool = False
    reserved_requests: int = 0
    omitted_parameters: tuple[OmittedParameter, ...] = ()


def claim(provider_id: int, *, limit: int, worker: str, hints: SlotHints = NO_HINTS) -> tuple[ClaimedTrial, ...]:
    """Claim queued trials of running runs, within the provider's concurrency limit over all workers.

    Trials that are claimed ahead come in addition and hold no slot. The first requests of the trials are counted here
    if the limits of their run allow it.

    Args:
        provider_id: the id of the provider.
        limit: maximum number of trials to claim, including those that are claimed ahead.
        worker: name of the claiming process.
        hints: corrections to the database's count of slots, and the number of trials to claim ahead.

    Returns:
        The claimed trials; empty if no trial can be claimed now or the provider was deleted.
    """
    parameters: dict[str, Any] = {
        "provider": provider_id,
        "max_trials": limit,
        "finished_leases": list(hints.finished_leases),
        "unstored_leases": list(hints.unstored_leases),
        "reserved_slots": hints.reserved_slots,
        "ahead": hints.ahead,
        "share": hints.share,
        "spare_requests": MIN_SPARE_REQUESTS + REQUESTS_RESERVED_AT_CLAIM,
    }
    parameters |= {"worker": worker, "lease": settings.LEASE_SECONDS, "first_requests": REQUESTS_RESERVED_AT_CLAIM}
    parameters |= {"isolate_after": ISOLATE_AFTER_LOSSES, "isolated": False}
    with transaction.atomic():
        with open_pipeline():
            database_thread.open_cursor().execute(_LOCK_SLOTS, _build_lock_key(provider_id))
            database_thread.open_cursor().execute(ENABLE_SYNCHRONOUS_COMMIT)
            claimed = database_thread.open_cursor().execute(CLAIM_STATEMENT, parameters)
        rows = claimed.fetchall() or _claim_isolated(parameters)
        return _reserve_first_requests([ClaimedTrial(*row) for row in rows])


def _reserve_first_requests(claimed: Sequence[ClaimedTrial]) -> tuple[ClaimedTrial, ...]:
    """Count the first requests of the claimed trials and return the trials with their `reserved_requests`.

    The claim itself counts the requests of runs without a limit; only the other runs are handled here.
    """
    trial_counts = Counter(trial.run_id for trial in claimed if not trial.reserved_requests)
    if not trial_counts:
        return tuple(claimed)
    in_flight = max((trial.in_flight for trial in claimed), default=0)
    requests_by_run = {
        run_id: reserve_at_claim(run_id, count, in_flight=in_flight) for run_id, count in sorted(trial_counts.items())
    }
    return tuple(
        replace(trial, reserved_requests=requests_by_run.get(trial.run_id, trial.reserved_requests))
        for trial in claimed
    )


def _claim_isolated(parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Claim one trial that must run alone, if it may run now (worker/sql/claim_trials.sql)."""
    with connection.wrap_database_errors:
        return (
            database_thread.open_cursor()
            .execute(
                CLAIM_STATEMENT,
                {**parameters, "max_trials": min(1, parameters["max_trials"]), "ahead": 0, "isolated": True},
            )
            .fetchall()
        )


def has_queued_trials(provider_id: int) -> bool:
    """Return whether a running run has a queued trial of the provider, even if it cannot be claimed yet."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_QUEUED_TRIALS, [provider_id])
        return bool(cursor.fetchone()[0])


def renew_leases(trial_leases: Sequence[tuple[int, UUID]]) -> set[UUID]:
    """Extend the leases of running trials.

    Args:
        trial_leases: pairs of a trial's id and its lease.

    Returns:
        The leases that were extended; the others are lost.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RENEW_LEASES, [*_split_trial_leases(trial_leases), settings.LEASE_SECONDS])
        return {row[0] for row in cursor.fetchall()}


def requeue(trial_leases: Sequence[tuple[int, UUID]], *, lost_server_ids: Collection[int] = ()) -> dict[int, int]:
    """Requeue running trials. Their steps stay stored as steps of a lost execution.

    Args:
        trial_leases: pairs of a trial's id and its lease.
        lost_server_ids: the ids of those trials whose local server died.

    Returns:
        The run id of each requeued trial, by trial id. Trials whose lease is lost are missing.
    """
    if not trial_leases:
        return {}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_REQUEUE, [list(lost_server_ids), *_split_trial_leases(trial_leases)])
        requeued = cursor.fetchall()
        mark_stale(cell_id for _, _, cell_id in requeued)
    return {trial_id: run_id for trial_id, run_id, _ in requeued}


def release_slot(trial_id: int, lease: UUID) -> None:
    """Release the slot of a trial that backs off."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_SLOT, [trial_id, lease])


def acquire_slot(provider_id: int, trial_id: int, *, lease: UUID, hints: SlotHints = NO_HINTS) -> bool:
    """Try to acquire a slot for a trial that backs off or was claimed ahead.

    The call can be repeated if the database's answer was lost: a slot that the trial holds already does not count.

    Returns:
        Whether a slot was free; always True if the provider was deleted. If the lease of the trial is lost, no slot is
        acquired even if the result is True. `RequestGate.reserve` then lets the trial send no request.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SLOTS, _build_lock_key(provider_id))
        uncounted_leases = [*hints.finished_leases, lease]
        cursor.execute(_HAS_FREE_SLOT, {"provider": provider_id, "uncounted_leases": uncounted_leases, "probes": True})
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(_ACQUIRE_SLOT, [trial_id, lease])
    return True


def lock_slots(provider_id: int) -> None:
    """Lock the provider's slots until the transaction ends: no other process counts or acquires them."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_SLOTS, _build_lock_key(provider_id))


def has_free_slot(provider_id: int) -> bool:
    """Return whether fewer trials are in flight than the provider's concurrency limit.

    Running probes are not counted: the caller is a probe, which has been claimed and waits for its slot.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HAS_FREE_SLOT, {"provider": provider_id, "uncounted_leases": [], "probes": False})
        return bool(cursor.fetchone()[0])


def _build_lock_key(provider_id: int) -> tuple[int, int]:
    """Return the key of the advisory lock on the provider's slots: two integers of four bytes."""
    return _SLOT_LOCK_NAMESPACE, provider_id % 2**31


def _split_trial_leases(trial_leases: Sequence[tuple[int, UUID]]) -> list[list[int] | list[UUID]]:
    return [[trial_id for trial_id, _ in trial_leases], [lease for _, lease in trial_leases]]
