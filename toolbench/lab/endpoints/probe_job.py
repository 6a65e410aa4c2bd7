"""Queue and execution of probes: a worker claims a probe, sends its requests and stores each check.

A probe whose worker has stopped is queued again when its lease expires. Its next execution sends all requests again.
The exchanges of earlier executions are kept. If they may have cost money, they count against the maximum of the probe:
`MAX_REQUESTS` for a conformance probe, `MAX_FIRST_USE_ATTEMPTS` for a probe at first use. Both maxima include retries,
because stored exchanges do not say whether they were retries.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db import transaction

from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.endpoints.probe_storage import (
    ClaimedProbe,
    ProbeLeaseLostError,
    claim_probe,
    count_earlier_exchanges,
    finish_probe,
    list_next_probes,
    renew_lease,
    requeue_probe,
    store_exchanges,
)
from toolbench.lab.models import Model, Probe, Provider, ServiceAddress
from toolbench.lab.paid_requests import check_confirmed, may_cost_money
from toolbench.lab.worker.background_jobs import keep_running
from toolbench.lab.worker.claims import has_free_slot
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread, is_unavailable
from toolbench.lab.worker.job_failures import count_failure, describe_internal_error
from toolbench.lab.worker.local_servers import LocalServerCheck
from toolbench.lab.worker.queue import notify_workers_of_probes
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
from toolbench.providers.probing.prober import ProbeLimitReachedError, Prober
from toolbench.providers.probing.probes import (
    MAX_FIRST_USE_ATTEMPTS,
    MAX_REQUESTS,
    probe_conformance,
    probe_first_use,
)

logger = logging.getLogger(__name__)

SLOT_POLL_SECONDS = 0.2  # pause between two checks for a free slot of the provider
# From this execution on, a probe is no longer interrupted if its local server stops, since the probe may be the cause.
MAX_EXECUTIONS = 20
MAX_ANSWER_SECONDS = 60.0  # deadline of one probe request with all its turns
_INTERRUPTED_TOO_OFTEN = (
    "The probe was interrupted, and repeating it would send more paid requests than one probe may send. Start a new "
    "probe on the page of the model."
)
OPEN_STATES = (Probe.State.QUEUED, Probe.State.RUNNING)


class ProbeInterruptedError(Exception):
    """Raised if the worker has to stop or the local server has stopped; the probe is queued again."""


@transaction.atomic
def queue_probe(model: Model, kind: str, *, why: str = "") -> Probe:
    """Return the open probe of this model and kind; if there is none, queue a new probe and return it.

    In a transaction that queues probes of several models, queue them in the order of the models' ids, so that two
    transactions cannot deadlock.

    Args:
        model: a model with its provider loaded.
        kind: a value of `Probe.Kind`.
        why: the reason that the probe's page shows, truncated to 200 characters.
    """
    _lock_models([model])
    open_probe = Probe.objects.filter(model=model, kind=kind, state__in=OPEN_STATES).first()
    if open_probe is not None:
        return open_probe
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


def queue_probes(provider_id: int, *, confirmed_requests: int = 0) -> list[Probe]:
    """Queue a conformance probe of every model of the provider that is not retired and has no open conformance probe.

    A provider runs one probe at a time.

    Args:
        provider_id: the provider.
        confirmed_requests: the number of paid requests that a user has confirmed.

    Returns:
        The new probes and those that were open already, ordered by the names of the models.

    Raises:
        PaidRequestsUnconfirmedError: more paid requests may be sent than are allowed without confirmation,
            and more than `confirmed_requests`.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    models = Model.objects.filter(provider=provider, retired=False).select_related("provider").order_by("name")
    return queue_conformance_probes(
        models, confirmed_requests=confirmed_requests, why="All models of the provider are probed."
    )


def queue_conformance_probes(models: Iterable[Model], *, why: str, confirmed_requests: int = 0) -> list[Probe]:
    """Queue a conformance probe of every given model that has no open conformance probe.

    Args:
        models: models with their provider loaded.
        why: the reason that the pages of the probes show.
        confirmed_requests: the number of paid requests that a user has confirmed, over all providers.

    Returns:
        The new probes and those that were open already, in the order of `models`.

    Raises:
        PaidRequestsUnconfirmedError: more paid requests may be sent than are allowed without confirmation,
            and more than `confirmed_requests`.
    """
    models = tuple(models)
    paid_models = [model for model in models if may_cost_money(model.provider, model.name, model.price)]
    counts = Counter(model.provider.name for model in paid_models)
    check_confirmed({name: count * MAX_REQUESTS for name, count in counts.items()}, confirmed_requests)
    with transaction.atomic():
        _lock_models(models)
        return [queue_probe(model, Probe.Kind.CONFORMANCE, why=why) for model in models]


def _lock_models(models: Iterable[Model]) -> None:
    """Lock the models until the transaction ends, so that simultaneous requests queue only one probe of each model.

    The rows are locked in the order of their ids, so that two requests cannot deadlock.
    """
    rows = Model.objects.select_for_update(no_key=True).filter(pk__in=[model.pk for model in models])
    list(rows.order_by("pk").values_list("pk"))


def list_queued_probes(provider_id: int) -> list[int]:
    """Return the ids of the provider's queued probes, oldest first."""
    queued = Probe.objects.filter(provider_id=provider_id, state=Probe.State.QUEUED)
    return list(queued.order_by("pk").values_list("pk", flat=True))


def run_probe(
    probe_id: int, is_stopping: Callable[[], bool] = lambda: False, *, on_finished: Callable[[int], object]
) -> bool:
    """Run a queued probe, unless another probe of its provider is running.

    Call it in a thread without an event loop.

    Args:
        probe_id: the probe.
        is_stopping: returns whether the worker has to stop; if it has, the probe is queued again.
        on_finished: called with the id of the probe's model when the probe is finished or queued again, or its lease is
            lost.

    Returns:
        Whether this call claimed the probe.

    Raises:
        django.db.Error: the database is unavailable; the probe is queued again when its lease expires.
    """
    claimed = claim_probe(probe_id)
    if claimed is None:
        return False
    try:
        _run_claimed_probe(claimed, is_stopping)
    except ProbeLeaseLostError:
        logger.warning("Probe %s: the lease was lost, so this worker stores no more results", probe_id)
    on_finished(claimed.model_id)
    notify_workers_of_probes(list_next_probes(probe_id))
    return True


def _run_claimed_probe(claimed: ClaimedProbe, is_stopping: Callable[[], bool]) -> None:
    """Run a claimed probe; if it cannot be finished, queue it again or store why it failed.

    Raises:
        ProbeLeaseLostError: the lease is lost.
        django.db.Error: the database is unavailable.
    """
    try:
        endpoint, address = _resolve_endpoint(claimed)
        asyncio.run(_ProbeRun(claimed, endpoint, address, is_stopping, _count_paid_requests(claimed)).run())
    except ProbeLeaseLostError:
        raise
    except ProbeLimitReachedError:
        finish_probe(claimed, [], sentence=_INTERRUPTED_TOO_OFTEN)
    except (ServedElsewhereError, ProbeInterruptedError):
        requeue_probe(claimed)
    except (ServerNotReadyError, KeyUnavailableError) as error:
        finish_probe(claimed, [], sentence=str(error))
    except Exception as error:
        if is_unavailable(error):
            raise  # the sweep queues the probe again when its lease expires
        logger.exception("Probe %s failed with an internal error", claimed.id)
        finish_probe(claimed, [], sentence=describe_internal_error(error))


def _resolve_endpoint(claimed: ClaimedProbe) -> tuple[Endpoint, ServiceAddress | None]:
    """Return the endpoint of the probe's model, and the address of the model's local server or None without one.

    The endpoint has the time limits of a probe.

    Raises:
        ProbeInterruptedError: the local server is not ready, and an earlier execution may have stopped it. In the first
            execution, and from `MAX_EXECUTIONS` on, ServerNotReadyError is raised instead.
        ServedElsewhereError: another machine serves the model.
        ServerNotReadyError: the local server is not ready.
        KeyUnavailableError: the key cannot be read.
    """
    model = Model.objects.select_related("provider").get(pk=claimed.model_id)
    access = load_provider_access(model.provider)
    try:
        endpoint = build_model_endpoint(access, model.provider.service, model.name)
    except ServerNotReadyError as error:
        if 1 < claimed.execution < MAX_EXECUTIONS:
            raise ProbeInterruptedError from error
        raise
    timeouts = replace(
        endpoint.timeouts, read=min(endpoint.timeouts.read, MAX_ANSWER_SECONDS), deadline=MAX_ANSWER_SECONDS
    )
    return replace(endpoint, timeouts=timeouts), find_local_server(access, model.provider.service)


def _count_paid_requests(claimed: ClaimedProbe) -> int:
    """Return the number of requests, with retries, of earlier executions; 0 if requests to the model cost nothing."""
    model = Model.objects.select_related("provider").get(pk=claimed.model_id)
    return count_earlier_exchanges(claimed) if may_cost_money(model.provider, model.name, model.price) else 0


@dataclass(slots=True)
class _ProbeRun:
    """One execution of a probe.

    An exchange stays in `_unstored_exchanges` until the next request or the end of its check.

    Attributes:
        address: the address of the local server; None for an endpoint elsewhere.
        is_stopping: returns whether the worker has to stop.
        earlier_requests: number of requests of earlier executions that count against the maximum of the probe.
    """

    claimed: ClaimedProbe
    endpoint: Endpoint
    address: ServiceAddress | None
    is_stopping: Callable[[], bool]
    earlier_requests: int
    _database: DatabaseThread = field(default_factory=DatabaseThread)
    _unstored_exchanges: list[tuple[str, ExchangeStep]] = field(default_factory=list)
    _last_exchange: ExchangeStep | None = None
    _server: LocalServerCheck | None = None
    _checks: list[ProbeCheck] = field(default_factory=list)
    _is_lease_lost: bool = False

    async def run(self) -> None:
        """Send the requests of all checks, and store every check and the result.

        Raises:
            ProbeLimitReachedError: the probe may not send a request that it needs; its exchanges are stored.
            ProbeLeaseLostError: the lease is lost.
            ProbeInterruptedError: the worker has to stop, or the local server has stopped.
        """
        try:
            async with HttpClient() as client, self._keep_lease():
                if self.address is not None:
                    self._server = LocalServerCheck(self.address, self.endpoint, client, self._database)
                await self._wait_for_slot()
                # The model has to repeat this word in its call.
                code_word = f"kestrel-{secrets.randbelow(9000) + 1000}"
                prober = Prober(
                    self.endpoint,
                    client,
                    self._record_exchange,
                    self._check_may_continue,
                    time.perf_counter,
                    code_word,
                    max_requests=MAX_FIRST_USE_ATTEMPTS if self.earlier_requests else None,
                    sent_requests=self.earlier_requests,
                )
                is_conformance = self.claimed.kind == Probe.Kind.CONFORMANCE
                try:
                    async for check in probe_conformance(prober) if is_conformance else probe_first_use(prober):
                        await self._check_server()
                        self._checks.append(check)
                        await self._store_exchanges()
                except ProbeLimitReachedError:
                    await self._store_exchanges()
                    raise
            address = self.endpoint.build_url("")
            await self._database.run(
                finish_probe, self.claimed, self._checks, exchanges=prober.exchanges, address=address
            )
        finally:
            await self._database.close()

    async def _wait_for_slot(self) -> None:
        """Wait until the provider has a free slot. The probe's claim keeps trials from taking it."""
        await self._check_may_continue()
        while not await self._database.run(has_free_slot, self.claimed.provider_id):
            await asyncio.sleep(SLOT_POLL_SECONDS)
            await self._check_may_continue()

    async def _store_exchanges(self) -> None:
        """Store the new exchanges and the finished checks; a cancellation takes effect only after that."""
        exchanges, self._unstored_exchanges = self._unstored_exchanges, []
        task = asyncio.create_task(self._database.run(store_exchanges, self.claimed, exchanges, self._checks))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise

    def _record_exchange(self, check: str, step: ExchangeStep) -> None:
        self._unstored_exchanges.append((check, step))
        self._last_exchange = step

    async def _check_may_continue(self) -> None:
        """Store the new exchanges, and raise an error if the probe must not send another request.

        Raises:
            ProbeLeaseLostError: the lease is lost.
            ProbeInterruptedError: the worker has to stop, or the local server has stopped.
        """
        if self._is_lease_lost:
            raise ProbeLeaseLostError
        if self._unstored_exchanges:
            await self._store_exchanges()
        if self.is_stopping():
            raise ProbeInterruptedError
        await self._check_server()

    async def _check_server(self) -> None:
        """Check that the local server did not stop during the last exchange; not checked from `MAX_EXECUTIONS` on.

        Raises:
            ProbeInterruptedError: it stopped.
        """
        if self._server is None or self._last_exchange is None or self.claimed.execution >= MAX_EXECUTIONS:
            return
        if await self._server.has_lost_server([self._last_exchange]):
            raise ProbeInterruptedError

    async def _count_failure(self, job: str, error: Exception) -> None:
        with suppress(*UNAVAILABLE_ERRORS):
            await self._database.run(count_failure, job, error, self.claimed.provider_id)

    @asynccontextmanager
    async def _keep_lease(self) -> AsyncIterator[None]:
        """Renew the lease every `settings.HEARTBEAT_SECONDS` while the `async with` block runs."""

        async def renew_until_lost() -> None:
            while not self._is_lease_lost:
                await asyncio.sleep(settings.HEARTBEAT_SECONDS)
                with suppress(*UNAVAILABLE_ERRORS):
                    self._is_lease_lost = not await self._database.run(renew_lease, self.claimed)

        task = asyncio.create_task(keep_running("renewing the lease of a probe", renew_until_lost, self._count_failure))
        try:
            yield
        finally:
            task.cancel()
