"""Addresses and health of the local servers.

The process that starts a server stores its address. Only workers on the host of this process can use the address.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from toolbench.lab.models import Provider, ServiceAddress
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.lab.worker.claims import ISOLATE_AFTER_LOSSES
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS, UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.health import filter_live_workers
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.http.aiohttp_transport import is_connection_refused
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_codes import lookup_error_code

HEALTH_TIMEOUT_SECONDS = 10.0
# A trial that has lost its server this many times and loses it once more is not requeued: it has run alone three times.
MAX_SERVER_LOSSES = ISOLATE_AFTER_LOSSES + 2
_INCOMPLETE_ANSWER_CODES = frozenset({"answer_cut", "deadline"})


def register_local_server(name: str, ready_line: Mapping[str, str]) -> None:
    """Store the address of a local server of this host.

    Args:
        name: the name of the server; an earlier address of this name is replaced.
        ready_line: parsed ready line of the server, with `url` and optionally `key` and `model`.
    """
    ServiceAddress.objects.update_or_create(
        name=name,
        defaults={
            "host": socket.gethostname(),
            "url": ready_line["url"],
            "key": ready_line.get("key", ""),
            "model": ready_line.get("model", ""),
            "ready_at": Now(),
        },
    )


def withdraw_local_server(name: str) -> None:
    """Delete the address of a server of this host that has ended.

    No trial is claimed for the server until it is registered again.
    """
    ServiceAddress.objects.filter(name=name, host=socket.gethostname()).delete()


def find_serving_host(provider_id: int) -> str:
    """Return the name of the other host on which the local server of a provider runs. Only workers there reach it.

    Returns:
        The name; "" if the provider has an address, if its local server runs on this host or nowhere, or if no worker
        of the other host is alive.
    """
    services = Provider.objects.filter(pk=provider_id, base_url="").exclude(service="").values("service")
    workers = filter_live_workers().filter(host=OuterRef("host"))
    addresses = ServiceAddress.objects.filter(Exists(workers), name__in=services)
    return addresses.exclude(host=socket.gethostname()).values_list("host", flat=True).first() or ""


def is_registered(address: ServiceAddress) -> bool:
    """Return whether this address is still registered; a later address of the same server does not count."""
    return _filter_address(address).exists()


def withdraw_address(address: ServiceAddress) -> None:
    """Delete this address, but not a later address of the same server."""
    _filter_address(address).delete()


def _filter_address(address: ServiceAddress) -> QuerySet[ServiceAddress]:
    return ServiceAddress.objects.filter(name=address.name, host=address.host, url=address.url, key=address.key)


def withdraw_host_servers() -> None:
    """Delete the addresses of all local servers of this host. Call it before they are started again."""
    ServiceAddress.objects.filter(host=socket.gethostname()).delete()


@dataclass(frozen=True, slots=True)
class LocalServerCheck:
    """Check of the local server that one trial or probe uses: whether it is still running.

    Attributes:
        address: the address of the server when the trial or probe started.
        endpoint: the model's endpoint at this server.
    """

    address: ServiceAddress
    endpoint: Endpoint
    client: HttpClient
    database: DatabaseThread

    async def has_lost_server(self, steps: Sequence[AnyStep]) -> bool:
        """Return whether the last exchange has no complete answer and the server is gone."""
        return _is_last_answer_incomplete(steps) and await self.is_gone()

    async def is_gone(self) -> bool:
        """Return whether the server is no longer registered or does not answer.

        If nothing listens at the address, the address is deleted: the supervisor, which deletes it otherwise, may have
        died with the server. No trial is claimed for the server until it is registered again.
        """
        while True:
            try:
                return not await self.database.run(is_registered, self.address) or not await self._ask_health()
            except UNAVAILABLE_ERRORS:
                await asyncio.sleep(DATABASE_RETRY_SECONDS)

    async def _ask_health(self) -> bool:
        """Return whether the server answers, with any status; delete its address if nothing listens there."""
        timeouts = Timeouts(
            connect=HEALTH_TIMEOUT_SECONDS, read=HEALTH_TIMEOUT_SECONDS, deadline=HEALTH_TIMEOUT_SECONDS
        )
        exchange = self.client.build_exchange(replace(self.endpoint, timeouts=timeouts), "health")
        await self.client.send(exchange)
        if is_connection_refused(exchange.exception):
            await self.database.run(withdraw_address, self.address)
        return exchange.status is not None


def _is_last_answer_incomplete(steps: Sequence[AnyStep]) -> bool:
    """Return whether the last exchange ended without a complete answer; False without an exchange."""
    last = next((step for step in reversed(steps) if isinstance(step, ExchangeStep)), None)
    if last is None:
        return False
    if last.error is None:
        return last.turn_read is not None and last.turn_read.is_truncated
    return last.error.code in _INCOMPLETE_ANSWER_CODES or lookup_error_code(last.error.code).error_class == "network"
