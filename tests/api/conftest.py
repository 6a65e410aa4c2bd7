"""What the tests of the API share: a token of the owner, and a client that sends it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

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
def stranger() -> Any:
    """A client without a token."""
    return Client()
