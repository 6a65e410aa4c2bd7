"""Claiming queued trials of one provider, keeping their leases, and giving them back.

Times are the database's. Whoever changes a running trial names its lease; where the lease is no longer his, nothing is
changed and he is told so by the row's absence from the answer."""

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
from toolbench.lab.worker import pipeline
from toolbench.lab.worker.pipeline import open_pipeline
from toolbench.lab.worker.request_budget import ENABLE_SYNCHRONOUS_COMMIT, REQUESTS_RESERVED_AT_CLAIM, reserve_at_claim
from toolbench.lab.worker.slots import SlotHints

NO_HINTS = SlotHints()
ISOLATE_AFTER_LOSSES = 3  # losses of its local server; it may be what kills the server
_SLOT_LOCK_NAMESPACE = 7_204_301  # namespace of the advisory locks that guard a provider's slots

_LOCK_SLOTS = "SELECT pg_advisory_xact_lock(%s, %s::int)"

# A probe that was claimed holds a slot, also while it waits for trials to leave one. A trial whose lease is in
# `finished` has sent its last request and holds none, though its end is not stored yet.
# Runs with fewest trials in flight come first, then in turn; none has more in flight than its own limit. Trials whose
# local server is not ready, or whose method a probe has yet to decide, stay queued. A run with a cap gets no more
# trials in flight than its remaining requests are likely to carry to their end, at what its trials took so far (3
# requests before any is done): those that the cap would stop half-way have only cost requests.
# A trial that lost its local server several times is claimed only while no other trial of the provider runs, and none
# is claimed beside it: so it is known who killed the server if it dies again.
# Of a run without a cap, each trial's first requests are counted here; cells are locked before runs, as everywhere.
_CLAIM = """
WITH busy AS (
    SELECT run_id, count(*) AS trials FROM lab_trial
    WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off
        AND lease <> ALL(%(over)s::uuid[]) GROUP BY run_id
), limits AS (
    SELECT total.trials AS in_flight,
        CASE WHEN EXISTS (SELECT 1 FROM lab_trial WHERE provider_id = %(provider)s AND state = 'running'
            AND (%(alone)s OR server_losses >= %(losses)s)) THEN 0
        ELSE greatest(0, least(%(want)s, provider.concurrency - total.trials - total.probes - %(kept)s)) END AS want
    FROM lab_provider AS provider, (SELECT coalesce(sum(trials), 0)::int AS trials, (SELECT count(*)::int FROM lab_probe
        WHERE provider_id = %(provider)s AND state = 'running') AS probes FROM busy) AS total
    WHERE provider.id = %(provider)s
), queue AS (
    SELECT next.id, next.rank + coalesce(busy.trials, 0) AS turn, run.id AS run_id
    FROM lab_run AS run
    LEFT JOIN busy ON busy.run_id = run.id
    CROSS JOIN LATERAL (
        SELECT greatest(1, coalesce(sum(requests)::float / nullif(sum(passed + failed + infra), 0), 3)) AS requests
        FROM lab_cell WHERE run_id = run.id AND run.request_cap IS NOT NULL
    ) AS trial_cost
    CROSS JOIN LATERAL (
        SELECT CASE WHEN run.request_cap IS NOT NULL THEN greatest(0, greatest(1,
            floor((run.request_cap - run.requests_reserved) / trial_cost.requests)::int) - coalesce(busy.trials, 0)
        ) END AS trials
    ) AS affordable
    CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY position) AS rank FROM lab_trial AS trial
        WHERE run_id = run.id AND provider_id = %(provider)s AND state = 'queued'
            AND (server_losses >= %(losses)s) = %(alone)s AND NOT EXISTS (
            SELECT 1 FROM lab_runconfig AS config WHERE config.id = trial.config_id AND (config.awaits_probe
            OR config.service <> '' AND NOT EXISTS (
                SELECT 1 FROM lab_serviceaddress AS address WHERE address.name = config.service)))
        ORDER BY position LIMIT least((SELECT want FROM limits), affordable.trials,
            CASE WHEN run.jobs IS NOT NULL THEN greatest(0, run.jobs - coalesce(busy.trials, 0)) END)
    ) AS next
    WHERE run.state = 'running' AND run.deleted_at IS NULL AND (run.requests_reserved < run.request_cap) IS NOT FALSE
        AND (run.tokens_used < run.token_cap) IS NOT FALSE AND (SELECT want FROM limits) > 0
    ORDER BY turn, run_id LIMIT (SELECT want FROM limits)
), free AS (
    SELECT trial.id FROM lab_trial AS trial JOIN queue USING (id)
    WHERE trial.state = 'queued' FOR NO KEY UPDATE OF trial SKIP LOCKED
), claimed AS (
    UPDATE lab_trial AS trial SET state = 'running', execution = execution + 1, lease = gen_random_uuid(),
        lease_until = clock_timestamp() + make_interval(secs => %(lease)s), worker = %(worker)s, backing_off = false,
        started_at = clock_timestamp(), concurrency = limits.in_flight + (SELECT count(*) FROM free)
    FROM free, limits WHERE trial.id = free.id
    RETURNING trial.id, trial.run_id, trial.config_id, trial.cell_id, trial.execution, trial.lease, trial.scenario,
        trial.scenario_version, trial.instance_kind, trial.instance_seed, trial.seed, trial.concurrency,
        trial.server_losses
), marked AS (
    UPDATE lab_cell SET stale = true WHERE id IN (
        SELECT id FROM lab_cell WHERE id IN (SELECT cell_id FROM claimed) ORDER BY id FOR NO KEY UPDATE)
    RETURNING id
), counted AS (
    UPDATE lab_run AS run SET requests_reserved = run.requests_reserved
        + %(ahead)s * (SELECT count(*) FROM claimed WHERE claimed.run_id = run.id)
    WHERE (SELECT count(*) FROM marked) > 0 AND id IN (
        SELECT id FROM lab_run WHERE id IN (SELECT run_id FROM claimed)
            AND request_cap IS NULL AND token_cap IS NULL ORDER BY id FOR NO KEY UPDATE)
    RETURNING id
)
SELECT claimed.*, CASE WHEN counted.id IS NULL THEN 0 ELSE %(ahead)s END
FROM claimed LEFT JOIN counted ON counted.id = claimed.run_id
"""

_HAS_QUEUED_TRIALS = """
SELECT EXISTS (SELECT 1 FROM lab_run AS run JOIN lab_provider AS provider ON provider.id = %s
    WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = provider.id AND state = 'queued'))
"""

_RENEW_LEASES = """
UPDATE lab_trial AS trial SET lease_until = clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.lease
"""

_REQUEUE = """
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false,
    server_losses = server_losses + (trial.id = ANY(%s::bigint[]))::int
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.id, trial.run_id, trial.cell_id
"""

_RELEASE_SLOT = "UPDATE lab_trial SET backing_off = true WHERE id = %s AND lease = %s AND state = 'running'"
_ACQUIRE_SLOT = "UPDATE lab_trial SET backing_off = false WHERE id = %s AND lease = %s AND state = 'running'"
_HAS_FREE_SLOT = """
SELECT coalesce((SELECT concurrency FROM lab_provider WHERE id = %(provider)s), 2147483647)
    > (SELECT count(*) FROM lab_trial WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off
        AND lease <> ALL(%(over)s::uuid[]))
    + (SELECT count(*) FROM lab_probe WHERE %(probes)s AND state = 'running' AND provider_id = %(provider)s)
"""


@light(frozen=True, slots=True)
class ClaimedTrial:
    """A trial that is ours until its lease ends, with `reserved_requests` requests counted already; `in_flight` are its
    provider's trials when it was claimed; `left_out` are parameters that its model is known to refuse in this run."""

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
    reserved_requests: int = 0
    left_out: tuple[OmittedParameter, ...] = ()


def claim(provider_id: int, *, want: int, worker: str, free: SlotHints = NO_HINTS) -> tuple[ClaimedTrial, ...]:
    """At most `want` queued trials of running runs, within the provider's limit over all workers; () when there is
    nothing to do, no free slot, or the provider is gone. Their first requests are counted here where the run's caps
    allow it."""
    wanted: dict[str, Any] = {"provider": provider_id, "want": want, "over": list(free.finished), "kept": free.reserved}
    wanted |= {"worker": worker, "lease": settings.LEASE_SECONDS, "ahead": REQUESTS_RESERVED_AT_CLAIM}
    wanted |= {"losses": ISOLATE_AFTER_LOSSES, "alone": False}
    with transaction.atomic():
        with open_pipeline():
            pipeline.open_cursor().execute(_LOCK_SLOTS, _build_lock_key(provider_id))
            pipeline.open_cursor().execute(ENABLE_SYNCHRONOUS_COMMIT)
            claimed = pipeline.open_cursor().execute(_CLAIM, wanted)
        rows = claimed.fetchall() or _claim_isolated(wanted)
        return _reserve_first_requests([ClaimedTrial(*row) for row in rows])


def _reserve_first_requests(claimed: Sequence[ClaimedTrial]) -> tuple[ClaimedTrial, ...]:
    """The same trials; those of runs with a cap with the requests that were counted for them."""
    capped = Counter(trial.run_id for trial in claimed if not trial.reserved_requests)
    in_flight = max((trial.in_flight for trial in claimed), default=0)
    ahead = {run: reserve_at_claim(run, count, in_flight=in_flight) for run, count in sorted(capped.items())}
    return tuple(
        replace(trial, reserved_requests=ahead.get(trial.run_id, trial.reserved_requests)) for trial in claimed
    )


def _claim_isolated(wanted: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Claim one trial of those that are tried alone, if no trial of the provider runs."""
    with connection.wrap_database_errors:
        return (
            pipeline.open_cursor().execute(_CLAIM, {**wanted, "want": min(1, wanted["want"]), "alone": True}).fetchall()
        )


def has_queued_trials(provider_id: int) -> bool:
    """Whether a trial of a running run waits for this provider, ready or not."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_QUEUED_TRIALS, [provider_id])
        return bool(cursor.fetchone()[0])


def renew_leases(held: Sequence[tuple[int, UUID]]) -> set[UUID]:
    """Lengthens leases; returns those that are still ours."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW_LEASES, [settings.LEASE_SECONDS, *_to_columns(held)])
        return {row[0] for row in cursor.fetchall()}


def requeue(held: Sequence[tuple[int, UUID]], *, lost: Collection[int] = ()) -> dict[int, int]:
    """Queue trials again that cannot go on now; their steps stay, as steps of a lost execution.

    Args:
        held: trials and their leases.
        lost: those of them under which the local server died.

    Returns:
        The runs of those that were still ours, by trial.
    """
    if not held:
        return {}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_REQUEUE, [list(lost), *_to_columns(held)])
        returned = cursor.fetchall()
        mark_stale(cell for _, _, cell in returned)
    return {trial: run for trial, run, _ in returned}


def release_slot(trial_id: int, lease: UUID) -> None:
    """The trial waits between two attempts: another may use its slot."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_SLOT, [trial_id, lease])


def acquire_slot(provider_id: int, trial_id: int, *, lease: UUID, free: SlotHints = NO_HINTS) -> bool:
    """True when the waiting trial has a slot again; a provider that is gone has no limit any more for trials
    already begun."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SLOTS, _build_lock_key(provider_id))
        cursor.execute(_HAS_FREE_SLOT, {"provider": provider_id, "over": list(free.finished), "probes": True})
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(_ACQUIRE_SLOT, [trial_id, lease])
    return True


def lock_slots(provider_id: int) -> None:
    """Until the transaction ends nobody else counts or takes the provider's slots."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_SLOTS, _build_lock_key(provider_id))


def has_free_slot(provider_id: int) -> bool:
    """Whether the trials in flight leave the slot that the provider's probe holds."""
    with connection.cursor() as cursor:
        cursor.execute(_HAS_FREE_SLOT, {"provider": provider_id, "over": [], "probes": False})
        return bool(cursor.fetchone()[0])


def _build_lock_key(provider_id: int) -> tuple[int, int]:
    """The advisory lock that guards the provider's slots until the transaction ends."""
    return _SLOT_LOCK_NAMESPACE, provider_id % 2**31


def _to_columns(held: Sequence[tuple[int, UUID]]) -> list[list[int] | list[UUID]]:
    return [[trial for trial, _ in held], [lease for _, lease in held]]
