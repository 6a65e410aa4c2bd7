"""Probing a model: a row that says what is wanted, a worker that asks the endpoint, every answer stored as it comes.

The row is the truth: a probe whose worker is gone is queued again when its lease is over, and what was sent before
stays visible, as sent."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db import transaction

from toolbench.lab.confirmation import FREE_KINDS, check_confirmed
from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.endpoints.probe_storage import (
    ClaimedProbe,
    ProbeLeaseLostError,
    claim_probe,
    finish_probe,
    renew_lease,
    requeue_probe,
    store_exchanges,
)
from toolbench.lab.models import Model, Probe, Provider, ServiceAddress
from toolbench.lab.worker.background_jobs import keep_running
from toolbench.lab.worker.claims import has_free_slot
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread, is_unavailable
from toolbench.lab.worker.job_failures import count_failure
from toolbench.lab.worker.local_server_checks import LocalServerCheck
from toolbench.lab.worker.notify import notify_workers_of_probes
from toolbench.lab.worker.trial_plan import (
    ServedElsewhereError,
    ServerNotReadyError,
    build_model_endpoint,
    find_local_server,
    load_provider_access,
)
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober
from toolbench.providers.probing.probes import MAX_REQUESTS, probe_conformance, probe_first_use

logger = logging.getLogger(__name__)

SLOT_POLL_SECONDS = 0.2  # between two looks for a free slot
MAX_EXECUTIONS = 20  # of a probe whose local server dies each time: it may be what kills the server
MAX_ANSWER_SECONDS = 60.0  # seconds that one conversation of a probe may take
OPEN_STATES = (Probe.State.QUEUED, Probe.State.RUNNING)


class ProbeInterruptedError(Exception):
    """The worker is asked to stop, or the local server has died; the probe is queued again."""


def queue_probe(model: Model, kind: str, *, why: str = "") -> Probe:
    """The open probe of this kind, or a new one that a worker will take up. Returns at once."""
    there = Probe.objects.filter(model=model, kind=kind, state__in=OPEN_STATES).first()
    if there is not None:
        return there
    probe = Probe.objects.create(
        model=model,
        provider_id=model.provider_id,
        model_name=model.name,
        provider_name=model.provider.name,
        kind=kind,
        why=why[:200],
    )
    transaction.on_commit(lambda: notify_workers_of_probes([probe.pk]))
    return probe


def queue_probes(provider_id: int, *, agreed: int = 0) -> list[Probe]:
    """A conformance probe of every model of the provider, as `queue_probe` does it; they are worked one after the
    other. Raises ConfirmationNeededError when they may send more paid requests than are sent without asking, and more
    than the `agreed` number, and Provider.DoesNotExist."""
    provider = Provider.objects.get(pk=provider_id)
    models = Model.objects.filter(provider=provider, retired=False).select_related("provider").order_by("name")
    paid = {} if provider.kind in FREE_KINDS else {provider.name: len(models) * MAX_REQUESTS}
    check_confirmed(paid, agreed)
    with transaction.atomic():
        return [
            queue_probe(model, Probe.Kind.CONFORMANCE, why="All models of the provider were asked.") for model in models
        ]


def list_queued_probes(provider_id: int) -> list[int]:
    """The probes of this provider that no worker has taken up yet."""
    queued = Probe.objects.filter(provider_id=provider_id, state=Probe.State.QUEUED)
    return list(queued.order_by("pk").values_list("pk", flat=True))


def run_probe(
    probe_id: int, stopping: Callable[[], bool] = lambda: False, *, on_finished: Callable[[int], object]
) -> bool:
    """Carry out a queued probe, unless another of its provider is under way.

    Call it in a thread without an event loop.

    Args:
        stopping: whether the worker is asked to stop; the probe is then queued again.
        on_finished: called with the model's id when the probe is done or queued again.

    Returns:
        Whether this call carried it out.
    """
    claimed = claim_probe(probe_id)
    if claimed is None:
        return False
    try:
        asyncio.run(_ProbeRun(claimed, *_resolve_endpoint(claimed), stopping).run())
    except (ServedElsewhereError, ProbeInterruptedError):
        requeue_probe(claimed)
    except (ServerNotReadyError, KeyUnavailableError) as error:
        finish_probe(claimed, [], sentence=str(error))
    except ProbeLeaseLostError:
        logger.warning("Probe %s: its lease was lost, it is given up", probe_id)
    except Exception as error:
        if is_unavailable(error):
            raise  # the sweep queues it again when its lease is over
        logger.exception("Probe %s failed within Toolbench itself", probe_id)
        finish_probe(
            claimed, [], sentence=f"Toolbench itself failed ({type(error).__name__}); the worker's log has more."
        )
    on_finished(claimed.model_id)
    notify_workers_of_probes(_list_next_probes(probe_id))
    return True


def _list_next_probes(than: int) -> list[int]:
    """The next probe of every provider, those first that a run waits for."""
    queued = Probe.objects.filter(state=Probe.State.QUEUED).exclude(pk=than)
    first = queued.order_by("provider_id", "-kind", "pk").distinct("provider_id")
    return list(first.values_list("pk", flat=True))


def _resolve_endpoint(claimed: ClaimedProbe) -> tuple[Endpoint, ServiceAddress | None]:
    """Return the endpoint, and the local server that it is. Raises ProbeInterruptedError for one that has died under
    this probe and is not back yet, ServedElsewhereError, ServerNotReadyError, KeyUnavailableError."""
    model = Model.objects.select_related("provider").get(pk=claimed.model_id)
    to = load_provider_access(model.provider)
    try:
        endpoint = build_model_endpoint(to, model.provider.service, model.name)
    except ServerNotReadyError as error:
        if 1 < claimed.execution < MAX_EXECUTIONS:
            raise ProbeInterruptedError from error
        raise
    limits = replace(
        endpoint.timeouts, read=min(endpoint.timeouts.read, MAX_ANSWER_SECONDS), deadline=MAX_ANSWER_SECONDS
    )
    return replace(endpoint, timeouts=limits), find_local_server(to, model.provider.service)


@dataclass(slots=True)
class _ProbeRun:
    """One probe under way. What was heard waits in `_unstored_exchanges` until the check it belongs to is over."""

    claimed: ClaimedProbe
    endpoint: Endpoint
    address: ServiceAddress | None
    stopping: Callable[[], bool]
    _database: DatabaseThread = field(default_factory=DatabaseThread)
    _unstored_exchanges: list[tuple[str, ExchangeStep]] = field(default_factory=list)
    _last_exchange: ExchangeStep | None = None
    _server: LocalServerCheck | None = None
    _checks: list[ProbeCheck] = field(default_factory=list)
    _is_lease_lost: bool = False

    async def run(self) -> None:
        try:
            async with HttpClient() as door, self._keep_lease():
                if self.address is not None:
                    self._server = LocalServerCheck(self.address, self.endpoint, door, self._database)
                await self._wait_for_slot()
                word = f"kestrel-{secrets.randbelow(9000) + 1000}"
                prober = Prober(
                    self.endpoint, door, self._record_exchange, self._check_may_continue, time.perf_counter, word
                )
                full = self.claimed.kind == Probe.Kind.CONFORMANCE
                async for check in probe_conformance(prober) if full else probe_first_use(prober):
                    await self._check_server()
                    self._checks.append(check)
                    await self._store_exchanges()
            address = self.endpoint.url("")
            await self._database.run(
                finish_probe, self.claimed, self._checks, exchanges=prober.exchanges, address=address
            )
        finally:
            await self._database.close()

    async def _wait_for_slot(self) -> None:
        """Waits for the provider's limit to leave a slot; no trial is claimed for it meanwhile."""
        await self._check_may_continue()
        while not await self._database.run(has_free_slot, self.claimed.provider_id):
            await asyncio.sleep(SLOT_POLL_SECONDS)
            await self._check_may_continue()

    async def _store_exchanges(self) -> None:
        heard, self._unstored_exchanges = self._unstored_exchanges, []
        await self._database.run(store_exchanges, self.claimed, heard, self._checks)

    def _record_exchange(self, check: str, step: ExchangeStep) -> None:
        self._unstored_exchanges.append((check, step))
        self._last_exchange = step

    async def _check_may_continue(self) -> None:
        if self._is_lease_lost:
            raise ProbeLeaseLostError
        if self.stopping():
            raise ProbeInterruptedError
        await self._check_server()

    async def _check_server(self) -> None:
        again = self.claimed.execution < MAX_EXECUTIONS
        if again and self._server and self._last_exchange and await self._server.has_lost_server([self._last_exchange]):
            raise ProbeInterruptedError

    async def _count_failure(self, job: str, error: Exception) -> None:
        with suppress(*UNAVAILABLE_ERRORS):
            await self._database.run(count_failure, job, error, self.claimed.provider_id)

    @asynccontextmanager
    async def _keep_lease(self) -> AsyncIterator[None]:
        """Keeps the lease while an answer is awaited."""

        async def beat() -> None:
            while not self._is_lease_lost:
                await asyncio.sleep(settings.HEARTBEAT_SECONDS)
                with suppress(*UNAVAILABLE_ERRORS):
                    self._is_lease_lost = not await self._database.run(renew_lease, self.claimed)

        task = asyncio.create_task(keep_running("renewing the lease of a probe", beat, self._count_failure))
        try:
            yield
        finally:
            task.cancel()
