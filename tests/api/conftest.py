"""Fixtures of the API tests: a token of the owner, and a client that sends it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from pytest_django import Settings

from tests.api.generated_requests import make_rows
from tests.api.requests import ApiClient
from toolbench.lab.accounts.tokens import Scope, create_api_token


@pytest.fixture
def secret(owner: User) -> str:
    """The secret of a token of the owner with every scope."""
    return create_api_token(owner, "tests", Scope.values, None)[1]


@pytest.fixture
def api(secret: str) -> ApiClient:
    """A client with this token."""
    return ApiClient(secret)


@pytest.fixture
def generated_rows(db: None, settings: Settings) -> Iterator[dict[str, Any]]:
    """Rows for generated requests, which are not rate-limited.

    A request to the WSGI application leaves the connection of the test open, as Django's test client does.
    """
    settings.API_READS_PER_MINUTE = settings.API_CHANGES_PER_MINUTE = 1_000_000
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield make_rows()
    for signal in signals:
        signal.connect(close_old_connections)
