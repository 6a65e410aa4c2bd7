"""Claiming queued trials of one provider, keeping their leases, and giving them back.

Times are the database's. Whoever changes a running trial names its lease; where the lease is no longer his, nothing is
changed and he is told so by the row's absence from the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from toolbench.lab.cells import mark_stale

_SLOTS = 7_204_301  # namespace of the advisory locks that guard a provider's slots

_LOCK = "SELECT pg_advisory_xact_lock(%s, %s::int)"

_IN_FLIGHT = "SELECT count(*) FROM lab_trial WHERE state = 'running' AND provider_id = %s AND NOT backing_off"

# Runs with fewest trials in flight come first, then in turn. Trials whose local server is not ready stay queued.
_CLAIM = """
WITH busy AS (
    SELECT run_id, count(*) AS trials FROM lab_trial
    WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off GROUP BY run_id
), queue AS (
    SELECT next.id, next.rank + coalesce(busy.trials, 0) AS turn, run.id AS run_id
    FROM lab_run AS run
    LEFT JOIN busy ON busy.run_id = run.id
    CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY position) AS rank FROM lab_trial AS trial
        WHERE run_id = run.id AND provider_id = %(provider)s AND state = 'queued' AND NOT EXISTS (
            SELECT 1 FROM lab_runconfig AS config WHERE config.id = trial.config_id AND config.service <> ''
            AND NOT EXISTS (SELECT 1 FROM lab_serviceaddress AS address WHERE address.name = config.service))
        ORDER BY position LIMIT %(want)s
    ) AS next
    WHERE run.state = 'running' AND (run.requests_reserved < run.request_cap) IS NOT FALSE
        AND (run.tokens_used < run.token_cap) IS NOT FALSE
    ORDER BY turn, run_id LIMIT %(want)s
), free AS (
    SELECT trial.id FROM lab_trial AS trial JOIN queue USING (id)
    WHERE trial.state = 'queued' FOR NO KEY UPDATE OF trial SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'running', execution = execution + 1, lease = gen_random_uuid(),
    lease_until = clock_timestamp() + make_interval(secs => %(lease)s), worker = %(worker)s, backing_off = false,
    started_at = clock_timestamp(), concurrency = %(in_flight)s + (SELECT count(*) FROM free)
FROM free WHERE trial.id = free.id
RETURNING trial.id, trial.run_id, trial.config_id, trial.cell_id, trial.execution, trial.lease, trial.scenario,
    trial.instance_kind, trial.instance_seed, trial.seed
"""

_HAS_WORK = """
SELECT EXISTS (SELECT 1 FROM lab_run AS run JOIN lab_provider AS provider ON provider.id = %s
    WHERE run.state = 'running' AND provider.paused_reason = '' AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_RENEW = """
UPDATE lab_trial AS trial SET lease_until = clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.id
"""

_GIVE_BACK = """
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.cell_id
"""

_LEAVE_SLOT = "UPDATE lab_trial SET backing_off = true WHERE id = %s AND lease = %s AND state = 'running'"
_TAKE_SLOT = "UPDATE lab_trial SET backing_off = false WHERE id = %s AND lease = %s AND state = 'running'"
_CONCURRENCY = "SELECT concurrency FROM lab_provider WHERE id = %s AND paused_reason = ''"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A trial that is ours until its lease ends."""

    id: int
    run_id: int
    config_id: int
    cell_id: int
    execution: int
    lease: UUID
    scenario: str
    instance_kind: str
    instance_seed: int
    seed: int


def claim(provider_id: int, *, want: int, worker: str) -> tuple[Claimed, ...]:
    """At most `want` queued trials of running runs, within the provider's limit over all workers; () when there is
    nothing to do, no free slot, or the provider is paused or gone."""
    with transaction.atomic(), connection.cursor() as cursor:
        in_flight, free = _slots(provider_id)
        if min(free, want) <= 0:
            return ()
        cursor.execute(
            _CLAIM,
            {
                "provider": provider_id,
                "want": min(free, want),
                "lease": settings.LEASE_SECONDS,
                "worker": worker,
                "in_flight": in_flight,
            },
        )
        claimed = tuple(Claimed(*row) for row in cursor.fetchall())
        mark_stale(trial.cell_id for trial in claimed)
    return claimed


def has_work(provider_id: int) -> bool:
    """Whether a trial of a running run waits for this provider, ready or not."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_WORK, [provider_id])
        return bool(cursor.fetchone()[0])


def renew(held: Sequence[tuple[int, UUID]]) -> set[int]:
    """Lengthens leases; returns the ids of those that are still ours."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [settings.LEASE_SECONDS, *_columns(held)])
        return {row[0] for row in cursor.fetchall()}


def give_back(held: Sequence[tuple[int, UUID]]) -> int:
    """Queues trials again that cannot go on now; their steps stay, as steps of a lost execution. Returns how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_GIVE_BACK, _columns(held))
        cells = [row[0] for row in cursor.fetchall()]
        mark_stale(cells)
    return len(cells)


def leave_slot(trial_id: int, lease: UUID) -> None:
    """The trial waits between two attempts: another may use its slot."""
    with connection.cursor() as cursor:
        cursor.execute(_LEAVE_SLOT, [trial_id, lease])


def take_slot(provider_id: int, trial_id: int, lease: UUID) -> bool:
    """True when the waiting trial has a slot again; a provider that is gone or paused has no limit any more for
    trials already begun."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, [_SLOTS, provider_id % 2**31])
        cursor.execute(_CONCURRENCY, [provider_id])
        row = cursor.fetchone()
        if row is not None and row[0] <= _count_in_flight(provider_id):
            return False
        cursor.execute(_TAKE_SLOT, [trial_id, lease])
    return True


def _slots(provider_id: int) -> tuple[int, int]:
    """Trials in flight and free slots, under the provider's advisory lock, which lasts until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [_SLOTS, provider_id % 2**31])
        cursor.execute(_CONCURRENCY, [provider_id])
        row = cursor.fetchone()
    if row is None:
        return 0, 0
    in_flight = _count_in_flight(provider_id)
    return in_flight, int(row[0]) - in_flight


def _count_in_flight(provider_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_IN_FLIGHT, [provider_id])
        return int(cursor.fetchone()[0])


def _columns(held: Sequence[tuple[int, UUID]]) -> list[list[int] | list[UUID]]:
    return [[trial for trial, _ in held], [lease for _, lease in held]]
