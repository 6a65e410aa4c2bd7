"""Claims and results of probes.

Results are stored only if the probe still has the lease of the claim. Times come from the clock of the database.
"""

import hashlib
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from toolbench.engine.bounds import parse_cost, parse_count
from toolbench.engine.events import ExchangeError
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.models import Probe, ProbeExchange
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.lab.worker.claims import lock_slots
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.masking.url_keys import mask_address
from toolbench.providers.probing.check_result import ProbeCheck, merge_capabilities

_CLAIM = load_statement("endpoints/claim_probe")
_RENEW = """
UPDATE lab_probe SET lease_until = clock_timestamp() + make_interval(secs => %s)
WHERE id = %s AND lease = %s AND state = 'running'
"""
_EXPIRE = """
UPDATE lab_probe SET state = 'queued', lease = NULL, lease_until = NULL
WHERE state = 'running' AND lease_until < clock_timestamp()
"""


class ProbeLeaseLostError(Exception):
    """Raised if the probe no longer runs with the lease of the claim; no more results are stored then.

    The probe was requeued, claimed again, finished or deleted.
    """


@dataclass(frozen=True, slots=True)
class ClaimedProbe:
    """A claimed probe. This process may store its results as long as the probe has this `lease`.

    Attributes:
        kind: a value of `Probe.Kind`.
        execution: the number of this execution, from 1.
    """

    id: int
    model_id: int
    provider_id: int
    kind: str
    execution: int
    lease: UUID


def claim_probe(probe_id: int) -> ClaimedProbe | None:
    """Claim a queued probe and clear its checks.

    While the probe is claimed, trials leave one slot of the provider to it. Send the first request only when
    `has_free_slot` returns True.

    Returns:
        The claimed probe; None if the probe is not queued or was deleted, or another probe of its provider runs.
    """
    provider_id = Probe.objects.filter(pk=probe_id).values_list("provider_id", flat=True).first()
    if provider_id is None:
        return None
    with transaction.atomic(), connection.cursor() as cursor:
        lock_slots(provider_id)
        cursor.execute(_CLAIM, [settings.LEASE_SECONDS, f"{socket.gethostname()}:{os.getpid()}", probe_id])
        row = cursor.fetchone()
    return ClaimedProbe(*row) if row else None


def renew_lease(claimed: ClaimedProbe) -> bool:
    """Renew the lease and return whether the probe is still claimed with it."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [settings.LEASE_SECONDS, claimed.id, claimed.lease])
        return bool(cursor.rowcount)


def count_earlier_exchanges(claimed: ClaimedProbe) -> int:
    """Return the number of stored exchanges of earlier executions of the probe, retries included."""
    return ProbeExchange.objects.filter(probe=claimed.id, execution__lt=claimed.execution).count()


def store_exchanges(
    claimed: ClaimedProbe, exchanges: Sequence[tuple[str, ExchangeStep]], checks: Sequence[ProbeCheck]
) -> None:
    """Store new exchanges and replace the stored checks, in one transaction.

    Args:
        claimed: the claimed probe.
        exchanges: (slug of the check, exchange) pairs that are not stored yet.
        checks: all checks that are finished.

    Raises:
        ProbeLeaseLostError: the lease is lost; the exchanges are not stored.
    """
    with transaction.atomic():
        _update_probe(claimed, checks=[_check_to_json(check) for check in checks])
        ProbeExchange.objects.bulk_create(_build_exchange(claimed, slug, step) for slug, step in exchanges)


def finish_probe(
    claimed: ClaimedProbe,
    checks: Sequence[ProbeCheck],
    *,
    exchanges: Sequence[ExchangeStep] = (),
    address: str = "",
    sentence: str = "",
) -> None:
    """Finish the probe with the results of all checks.

    Args:
        claimed: the claimed probe.
        checks: the results; empty if the probe failed, which keeps the checks that are stored.
        exchanges: all exchanges of this execution in order; `store_exchanges` has stored them. Of the first one, the
            row of the probe gets the duration, the SHA-256 of the response body and, if the check of tools is
            inconclusive, the error code.
        address: the base URL; it is stored with keys masked.
        sentence: why the probe failed; ignored if the check of tools is among `checks`.

    Raises:
        ProbeLeaseLostError: the lease is lost; the result is not stored.
    """
    first_exchange = exchanges[0] if exchanges else None
    tools_check = next((check for check in checks if check.slug == "tools"), None)
    fields: dict[str, Any] = {"checks": [_check_to_json(check) for check in checks]} if checks else {}
    _update_probe(
        claimed,
        **fields,
        state=Probe.State.DONE,
        finished_at=Now(),
        lease=None,
        lease_until=None,
        ok=tools_check is not None and tools_check.outcome != "unknown",
        error=_find_error_code(first_exchange.error if first_exchange else None, tools_check),
        sentence=to_column_text(tools_check.sentence if tools_check else sentence, 4000),
        latency_ms=first_exchange.duration_ms if first_exchange else None,
        raw_hash=hashlib.sha256(first_exchange.response_body).hexdigest() if first_exchange else "",
        learned=merge_capabilities(checks).get_known_values(),
        base_url=to_column_text(mask_address(address), 300),
        engine_version=compute_engine_version(),
    )


def requeue_probe(claimed: ClaimedProbe) -> None:
    """Requeue the probe, unless its lease is lost."""
    Probe.objects.filter(pk=claimed.id, lease=claimed.lease).update(
        state=Probe.State.QUEUED, lease=None, lease_until=None
    )


def requeue_lost_probes() -> tuple[int, ...]:
    """Requeue the probes whose lease has expired; return the id of the next queued probe of each provider."""
    with connection.cursor() as cursor:
        cursor.execute(_EXPIRE)
    return list_next_probes()


def list_next_probes(excluded_id: int = 0) -> tuple[int, ...]:
    """Return the id of the next queued probe of each provider.

    A provider runs one probe at a time. A probe at first use comes before conformance probes, because a run waits for
    it.

    Args:
        excluded_id: the id of a probe to leave out, since a probe that was just requeued must not start again at once;
            0 for none.
    """
    queued = Probe.objects.filter(state=Probe.State.QUEUED).exclude(pk=excluded_id)
    next_probes = queued.order_by("provider_id", "-kind", "pk").distinct("provider_id")
    return tuple(next_probes.values_list("pk", flat=True))


def _update_probe(claimed: ClaimedProbe, **fields: Any) -> None:
    leased = Probe.objects.filter(pk=claimed.id, lease=claimed.lease, state=Probe.State.RUNNING)
    if not leased.update(**fields):
        raise ProbeLeaseLostError


def _find_error_code(error: ExchangeError | None, tools_check: ProbeCheck | None) -> str:
    return error.code[:60] if error and tools_check and tools_check.outcome == "unknown" else ""


def _check_to_json(check: ProbeCheck) -> dict[str, Any]:
    return {**asdict(check), "sentence": to_column_text(check.sentence, 2000)}


def _build_exchange(claimed: ClaimedProbe, slug: str, step: ExchangeStep) -> ProbeExchange:
    usage = step.turn_read.usage if step.turn_read else None
    return ProbeExchange(
        probe_id=claimed.id,
        execution=claimed.execution,
        ordinal=step.ordinal,
        check_slug=slug,
        url=to_column_text(step.url, 400),
        status=step.status,
        error_code=step.error.code[:60] if step.error else "",
        duration_ms=step.duration_ms,
        streamed=step.request.is_streamed,
        body_cut=step.body_cut,
        masked=step.masked,
        input_tokens=parse_count(usage.input_tokens) if usage else None,
        output_tokens=parse_count(usage.output_tokens) if usage else None,
        cost=parse_cost(usage.cost) if usage else None,
        request=step.request_body,
        response=step.response_body,
    )
