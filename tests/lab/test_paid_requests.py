"""Requests that may cost money: by kind of provider, by address and by price."""

import pytest

from tests.factories import make_provider
from toolbench.lab.paid_requests import PRIVATE_ADDRESS_ORIGIN, find_model_price, is_private_address, may_cost_money

pytestmark = pytest.mark.django_db

PRICE = {"input": 1.0, "output": 2.0}


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434",
        "http://127.0.0.1:8000/v1",
        "http://[::1]:8000",
        "http://10.1.2.3",
        "http://192.168.1.20:1234",
        "http://[fd00::5]/v1",
        "http://ollama:11434",
        "http://gpu-box.lan",
        "http://host.docker.internal:8000",
        "http://model.localhost.",
    ],
)
def test_is_private_address_of_host_or_private_network_is_true(url: str) -> None:
    assert is_private_address(url)


@pytest.mark.parametrize(
    "url",
    ["", "https://api.example.com/v1", "http://8.8.8.8", "https://localhost.example.com", "http://[", "https://lan.io"],
)
def test_is_private_address_of_other_address_is_false(url: str) -> None:
    assert not is_private_address(url)


def test_may_cost_money_at_private_address_needs_a_price() -> None:
    private = make_provider("Own", base_url="http://192.168.1.20:8000")

    assert not may_cost_money(private, "llama", {})
    assert not may_cost_money(private, "llama", {"input": 0, "output": 0})
    assert may_cost_money(private, "llama", PRICE)


def test_may_cost_money_at_public_address_needs_no_price() -> None:
    assert may_cost_money(make_provider(), "vendor/model-a", {})


@pytest.mark.parametrize("kind", ["local", "simulated"])
def test_may_cost_money_of_local_or_simulated_model_is_false(kind: str) -> None:
    assert not may_cost_money(make_provider("Local", kind=kind), "llama", PRICE)


def test_find_model_price_at_public_address_without_list_is_none() -> None:
    assert find_model_price(make_provider(), "vendor/model-a", {}) is None


@pytest.mark.parametrize("fields", [{"base_url": "http://192.168.1.20:8000"}, {"kind": "local"}, {"kind": "simulated"}])
def test_find_model_price_of_private_server_is_zero_by_default(fields: dict[str, str]) -> None:
    private = make_provider("Own", **fields)

    unpriced, priced = find_model_price(private, "llama", {}), find_model_price(private, "llama", PRICE)

    assert unpriced is not None
    assert priced is not None
    assert (unpriced.input, unpriced.output, unpriced.origin) == (0, 0, PRIVATE_ADDRESS_ORIGIN)
    assert (priced.input, priced.output) == (1, 2)
