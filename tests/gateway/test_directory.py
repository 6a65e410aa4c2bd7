"""Cache of tokens in the gateway: shared reads, bounds, wrong tokens, and a database outage."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    chat_body,
    in_database,
    make_token,
    messages_body,
    post,
    read_traces,
    run,
    scripted_gateway,
)
from toolbench.gateway import directory as directory_module
from toolbench.gateway.directory import Directory
from toolbench.gateway.request import GatewayError
from toolbench.lab.accounts.tokens import TokenAccess, find_access
from toolbench.lab.worker import database_thread
from toolbench.providers.scripted_server import text_reply

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "192.0.2.1"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Secrets that were looked up in the database, in order."""
    secrets: list[str] = []

    def count_read(secret: str) -> TokenAccess | None:
        secrets.append(secret)
        return find_access(secret)

    monkeypatch.setattr(directory_module, "find_access", count_read)
    return secrets


def run_directory(body: Callable[[Directory], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        directory = Directory()
        try:
            await body(directory)
        finally:
            await directory.close()

    asyncio.run(run())


async def find_refusal(directory: Directory, secret: str) -> tuple[int, str]:
    with pytest.raises(GatewayError) as raised:
        await directory.check_token(secret, ADDRESS)
    return raised.value.status, raised.value.code


def test_check_token_concurrent_requests_share_one_read(settings: LazySettings, reads: list[str]) -> None:
    settings.API_REFUSALS_PER_MINUTE = 3

    async def body(directory: Directory) -> None:
        token = await in_database(make_token)
        found = await asyncio.gather(*(directory.check_token(token, ADDRESS) for _ in range(20)))
        assert {access.name for access in found} == {"app"}
        assert reads == [token]

    run_directory(body)


def test_check_token_does_not_limit_new_valid_tokens(settings: LazySettings) -> None:
    settings.API_REFUSALS_PER_MINUTE = 3

    async def body(directory: Directory) -> None:
        tokens = [await in_database(make_token) for _ in range(5)]
        found = await asyncio.gather(*(directory.check_token(token, ADDRESS) for token in tokens))
        assert {access.name for access in found} == {"app"}

    run_directory(body)


def test_check_token_does_not_read_wrong_tokens_beyond_limit(settings: LazySettings, reads: list[str]) -> None:
    settings.API_REFUSALS_PER_MINUTE = 3

    async def body(directory: Directory) -> None:
        token = await in_database(make_token)
        await directory.check_token(token, ADDRESS)
        refusals = [await find_refusal(directory, f"tb_wrong_{number}") for number in range(5)]
        # A minute may end within the loop, so only the kinds are certain.
        assert refusals[0] == (401, "invalid_token")
        assert set(refusals) <= {(401, "invalid_token"), (429, "too_many_wrong_tokens")}
        assert len(reads) == 1 + refusals.count((401, "invalid_token")) < 6
        await directory.check_token(token, ADDRESS)  # a known token is not limited

    run_directory(body)


def test_check_token_limits_concurrent_wrong_tokens(settings: LazySettings, reads: list[str]) -> None:
    settings.API_REFUSALS_PER_MINUTE = 3

    async def body(directory: Directory) -> None:
        refusals = await asyncio.gather(*(find_refusal(directory, f"tb_wrong_{number}") for number in range(100)))
        # A minute may end meanwhile.
        assert 3 <= len(reads) == refusals.count((401, "invalid_token")) <= 6
        assert set(refusals) == {(401, "invalid_token"), (429, "too_many_wrong_tokens")}

    run_directory(body)


def test_check_token_wrong_tokens_do_not_evict_valid_ones(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_REFUSALS_PER_MINUTE = 1_000
    monkeypatch.setattr(directory_module, "MAX_CACHED_TOKENS", 3)

    async def body(directory: Directory) -> None:
        token = await in_database(make_token)
        await directory.check_token(token, ADDRESS)
        for number in range(10):
            assert await find_refusal(directory, f"tb_wrong_{number}") == (401, "invalid_token")
        assert (len(directory._valid_tokens), len(directory._other_tokens)) == (1, 3)
        await directory.check_token(token, ADDRESS)

    run_directory(body)


def break_database_connection(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Make every use of the database connection by a gateway thread fail until the patch is undone.

    Returns:
        The functions that failed; the list grows while the patch is applied.
    """
    failed: list[Callable[[], object]] = []

    def fail(work: Callable[[], object]) -> object:
        failed.append(work)
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(database_thread, "_run_on_connection", fail)
    return failed


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat_body()), (MESSAGES, messages_body())])
def test_gateway_serves_known_token_and_alias_in_database_outage(path: str, body: Any) -> None:
    async def exchange() -> None:
        token = await in_database(make_token)
        async with scripted_gateway(*[text_reply("Hi")] * 3) as (gateway, _):
            assert (await post(gateway, body, path))[0] == 200
            with pytest.MonkeyPatch.context() as monkeypatch:
                failed = break_database_connection(monkeypatch)
                async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
                    while not failed:  # a value is read again when it is used
                        assert (await gateway.session.get("/v1/models")).status == 200
                        await asyncio.sleep(POLL_SECONDS)
                assert (await post(gateway, body, path))[0] == 200
                status, answer, headers = await post(gateway, body, path, authorization=f"Bearer {token}")
                assert (status, headers["retry-after"]) == (503, "5")
                assert answer["error"]["type"] == "api_error"
                assert "database" in answer["error"]["message"]
            assert len(await read_traces(2)) == 2  # the second trace is stored after the outage

    run(exchange)
