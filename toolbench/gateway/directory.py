"""Aliases, tokens and spent budgets, which the gateway reads from the database in the background."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial

from django.conf import settings

from toolbench.gateway.cached_read import CachedRead
from toolbench.gateway.request import GatewayError
from toolbench.gateway.token_limit import WrongTokenLimit
from toolbench.lab.accounts.tokens import Scope, TokenAccess, find_access
from toolbench.lab.serving.budget_watch import BudgetWatch
from toolbench.lab.serving.served_aliases import ServedAlias, load_served_aliases
from toolbench.lab.worker.database_thread import DatabaseThread

MAX_CACHED_TOKENS = 10_000  # valid tokens, and as many others; one more drops the least recently used one
MAX_BUDGET_AGE_SECONDS = 5.0
MAX_FIRST_BUDGET_WAIT_SECONDS = 30.0  # adding up a month of trials for the first time may take long

_Tokens = OrderedDict[bytes, CachedRead[TokenAccess | None]]  # by the token's SHA-256 digest


class Directory:
    """Cache of aliases, tokens and budgets.

    Budgets have a thread and a connection of their own: adding up the trials of a month may take seconds.
    """

    def __init__(self) -> None:
        self._thread = DatabaseThread()
        self._budget_thread = DatabaseThread()
        self._last_aliases: Mapping[str, ServedAlias] = {}  # as the last read returned them
        self._aliases = CachedRead(self._read_aliases)
        self._budgets = CachedRead(
            partial(self._budget_thread.run, BudgetWatch().find_refusals),
            max_age_seconds=MAX_BUDGET_AGE_SECONDS,
            max_first_wait_seconds=MAX_FIRST_BUDGET_WAIT_SECONDS,
        )
        self._valid_tokens: _Tokens = OrderedDict()
        # Tokens that are wrong or not checked yet. They have a cache of their own, so that they displace no valid ones.
        self._other_tokens: _Tokens = OrderedDict()
        self._wrong_token_limit = WrongTokenLimit(settings.API_REFUSALS_PER_MINUTE)

    async def get_aliases(self) -> Mapping[str, ServedAlias]:
        """Return all aliases by name.

        Raises:
            GatewayError: see CachedRead.get.
        """
        return await self._aliases.get()

    async def _read_aliases(self) -> Mapping[str, ServedAlias]:
        loaded = await self._thread.run(load_served_aliases)
        # An unchanged alias stays the same object, since it keeps its resolved policies.
        unchanged = {name: alias for name, alias in self._last_aliases.items() if loaded.get(name) == alias}
        self._last_aliases = {**loaded, **unchanged}
        return self._last_aliases

    async def find_budget_refusal(self, provider_id: int) -> str:
        """Return why the provider's budget allows no request; "" if it does.

        Raises:
            GatewayError: see CachedRead.get.
        """
        return (await self._budgets.get()).get(provider_id, "")

    async def check_token(self, secret: str, address: str) -> TokenAccess:
        """Return the access of a token with the scope `serve`.

        Args:
            secret: the token; "" if the request has none.
            address: IP address of the client.

        Raises:
            GatewayError: the token is missing, unknown, revoked or expired, or lacks the scope; the address sent too
                many wrong tokens; or see CachedRead.get.
        """
        if not secret:
            raise GatewayError(401, "missing_token", "Send a token with the scope serve as Authorization: Bearer …")
        access = await self._find_access(secret, address)
        if access is None:
            sentence = "The token is unknown, revoked or expired. Create a token on the page Tokens."
            raise GatewayError(401, "invalid_token", sentence)
        if Scope.SERVE not in access.scopes:
            sentence = "The token lacks the scope serve. Create a token with it on the page Tokens."
            raise GatewayError(403, "missing_scope", sentence)
        return access

    async def _find_access(self, secret: str, address: str) -> TokenAccess | None:
        """Return the access of a token; None for a wrong token.

        A wrong token is counted for the client's address, unless the token was valid at its last use.

        Raises:
            GatewayError: see WrongTokenLimit.serialise_look_ups and CachedRead.get.
        """
        key = hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
        if (cached_access := self._valid_tokens.get(key)) is not None:
            access = await cached_access.get()
        else:
            async with self._wrong_token_limit.serialise_look_ups(address):
                cached_access = (
                    self._valid_tokens.get(key)  # found by another request meanwhile
                    or self._other_tokens.get(key)
                    or CachedRead(partial(self._thread.run, find_access, secret))
                )
                _remember(self._other_tokens, key, cached_access)  # before the read, so that other requests share it
                access = await cached_access.get()
                if access is None:
                    self._wrong_token_limit.count(address)
        self._valid_tokens.pop(key, None)
        self._other_tokens.pop(key, None)
        _remember(self._other_tokens if access is None else self._valid_tokens, key, cached_access)
        return access

    async def close(self) -> None:
        """Close the connections and end the threads."""
        await self._thread.close()
        await self._budget_thread.close()


def _remember(tokens: _Tokens, key: bytes, cached_access: CachedRead[TokenAccess | None]) -> None:
    """Add a token as the most recently used one; if there are too many, drop the least recently used one."""
    tokens[key] = cached_access
    tokens.move_to_end(key)
    if len(tokens) > MAX_CACHED_TOKENS:
        tokens.popitem(last=False)
