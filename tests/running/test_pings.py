"""Addresses at which the supervisor pings local servers."""

import pytest

from toolbench.running.pings import find_ping_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:8001", ("127.0.0.1", 8001)),
        ("http://0.0.0.0:8001", ("127.0.0.1", 8001)),
        ("http://[::]:8001", ("::1", 8001)),
        ("http://192.0.2.7:8001", ("192.0.2.7", 8001)),
        ("http://bench.example.org:8001", None),
        ("http://127.0.0.1", None),
        ("http://127.0.0.1:port", None),
        ("", None),
    ],
)
def test_find_ping_address_of_an_ip_address_needs_no_lookup(url: str, address: tuple[str, int] | None) -> None:
    assert find_ping_address(url) == address
