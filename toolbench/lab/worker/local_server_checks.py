"""Checks whether a local server died during a trial or a probe."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.lab.models import ServiceAddress
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.lab.worker.claims import ISOLATE_AFTER_LOSSES
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, DatabaseThread
from toolbench.lab.worker.local_services import is_registered, withdraw_address
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.http.aiohttp_transport import is_connection_refused
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_codes import lookup_error_code

HEALTH_TIMEOUT_SECONDS = 10.0
DATABASE_RETRY_SECONDS = 0.5  # between two tries while the database is away
# A trial that loses its server once more after these losses is not queued again; it has then run alone three times.
MAX_SERVER_LOSSES = ISOLATE_AFTER_LOSSES + 2
_BROKEN_CODES = frozenset({"answer_cut", "deadline"})


@dataclass(frozen=True, slots=True)
class LocalServerCheck:
    """The local server that one trial or probe uses."""

    address: ServiceAddress
    endpoint: Endpoint
    client: HttpClient
    database: DatabaseThread

    async def has_lost_server(self, steps: Sequence[AnyStep]) -> bool:
        """Return whether the last exchange brought no complete answer because the server died."""
        return _is_broken(steps) and await self.is_gone()

    async def is_gone(self) -> bool:
        """Return whether the server is no longer registered or does not answer.

        If nothing listens at the address, the address is withdrawn here too, since the supervisor may have died with
        the server. No trial is claimed for the server until it is registered again.
        """
        while True:
            try:
                return not await self.database.run(is_registered, self.address) or await self._is_silent()
            except UNAVAILABLE_ERRORS:
                await asyncio.sleep(DATABASE_RETRY_SECONDS)

    async def _is_silent(self) -> bool:
        limits = Timeouts(connect=HEALTH_TIMEOUT_SECONDS, read=HEALTH_TIMEOUT_SECONDS, deadline=HEALTH_TIMEOUT_SECONDS)
        exchange = self.client.open(replace(self.endpoint, timeouts=limits), "health")
        await self.client.send(exchange)
        if is_connection_refused(exchange.exception):
            await self.database.run(withdraw_address, self.address)
        return exchange.status is None


def _is_broken(steps: Sequence[AnyStep]) -> bool:
    """Return whether the last exchange ended without a complete answer, for any reason."""
    last = next((step for step in reversed(steps) if isinstance(step, ExchangeStep)), None)
    if last is None or last.error is None:
        return last is not None and last.turn_read is not None and last.turn_read.cut
    return last.error.code in _BROKEN_CODES or lookup_error_code(last.error.code).kind == "network"
