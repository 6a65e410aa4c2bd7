"""Cache of aliases and tokens, which the gateway reads from the database at most about once a second."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections, connections

from toolbench.gateway.request import GatewayError
from toolbench.lab.accounts.tokens import Scope, TokenAccess, find_access
from toolbench.lab.serving.served_aliases import ServedAlias, load_served_aliases

MAX_AGE_SECONDS = 0.9  # so that a revoked token or a changed alias takes effect within a second
MAX_TOKENS = 10_000  # in the cache
_Value = TypeVar("_Value")


class Directory:
    """Cache of aliases and tokens. One thread makes all queries, so that they do not block the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "directory")
        self._aliases: Mapping[str, ServedAlias] = {}
        self._aliases_at = -MAX_AGE_SECONDS
        self._refreshing: asyncio.Future[None] | None = None
        self._tokens: dict[str, tuple[float, TokenAccess | None]] = {}

    async def get_aliases(self) -> Mapping[str, ServedAlias]:
        """Return all aliases by name, at most `MAX_AGE_SECONDS` old."""
        if time.monotonic() - self._aliases_at > MAX_AGE_SECONDS:
            if self._refreshing is None or self._refreshing.done():
                self._refreshing = asyncio.ensure_future(self._refresh())
            await asyncio.shield(self._refreshing)
        return self._aliases

    async def _refresh(self) -> None:
        started = time.monotonic()
        loaded = await self.run(load_served_aliases)
        # An unchanged alias stays the same object, since it keeps its resolved policies.
        unchanged = {name: alias for name, alias in self._aliases.items() if loaded.get(name) == alias}
        self._aliases, self._aliases_at = {**loaded, **unchanged}, started

    async def check_token(self, secret: str) -> TokenAccess:
        """Return the access of a token with the scope `serve`.

        Raises:
            GatewayError: the token is missing, unknown, revoked or expired, or lacks the scope.
        """
        if not secret:
            raise GatewayError(401, "missing_token", "Send a token with the scope serve as Authorization: Bearer …")
        known_at, access = self._tokens.get(secret, (-MAX_AGE_SECONDS, None))
        if time.monotonic() - known_at > MAX_AGE_SECONDS:
            known_at, access = time.monotonic(), await self.run(lambda: find_access(secret))
            if len(self._tokens) >= MAX_TOKENS:
                self._tokens.clear()
            self._tokens[secret] = known_at, access
        if access is None:
            sentence = "The token is unknown, revoked or expired. Create a token on the page Tokens."
            raise GatewayError(401, "invalid_token", sentence)
        if Scope.SERVE not in access.scopes:
            sentence = "The token lacks the scope serve. Create a token with it on the page Tokens."
            raise GatewayError(403, "missing_scope", sentence)
        return access

    async def run(self, work: Callable[[], _Value]) -> _Value:
        """Call a function that uses the database in the thread, and return its result."""

        def call() -> _Value:
            close_old_connections()
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def close(self) -> None:
        """Close the thread's database connections and end the thread."""
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=True)
