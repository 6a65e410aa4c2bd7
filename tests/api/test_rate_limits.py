"""Rate limits of the API: refusal with 429 and the time to wait."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from tests.api.requests import ApiClient
from tests.factories import make_run
from toolbench.api import rate_limits

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fixed_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of the limits, since counts begin anew with each minute."""
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(time=lambda: 1_800_000_030.0))


@pytest.fixture(autouse=True)
def empty_broker(servers: None, settings: Settings) -> Iterator[None]:
    """Delete the counts of other tests."""
    Redis.from_url(settings.REDIS_URL).flushdb()
    yield
    Redis.from_url(settings.REDIS_URL).flushdb()


def test_rate_limit_counts_reads_and_changes_separately(api: ApiClient, settings: Settings) -> None:
    run = make_run()
    settings.API_READS_PER_MINUTE, settings.API_CHANGES_PER_MINUTE = 1_000, 1
    api.send("PATCH", f"/runs/{run.pk}", {"label": "a"})
    answer = api.send("PATCH", f"/runs/{run.pk}", {"label": "b"})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "30"
    api.get("/runs")


def test_rate_limit_refuses_wrong_tokens_of_one_address(client: Client, api: ApiClient, settings: Settings) -> None:
    settings.API_REFUSALS_PER_MINUTE = 2
    for _ in range(2):
        assert client.get("/api/v1/runs", headers={"Authorization": "Bearer no"}).status_code == 401
    assert client.get("/api/v1/runs", headers={"Authorization": "Bearer no"}).status_code == 429
