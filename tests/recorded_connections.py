"""Addresses that this process connects to, as audit events of the interpreter report them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_listeners: list[list[object]] = []


def _record_event(event: str, arguments: tuple[object, ...]) -> None:
    """Record connections for each listener. The hook stays installed, since audit hooks cannot be removed."""
    if event in ("socket.connect", "socket.getaddrinfo"):
        address = arguments[1] if event == "socket.connect" else arguments[:2]
        if isinstance(address, tuple):  # the path of a unix socket is a text
            for recorded in _listeners:
                recorded.append(address)


@cache
def _install_hook() -> None:
    sys.addaudithook(_record_event)


@contextmanager
def record_connections() -> Iterator[list[object]]:
    """Yield a list that gets the address of every TCP connection and host look-up during the block."""
    _install_hook()
    recorded: list[object] = []
    _listeners.append(recorded)
    try:
        yield recorded
    finally:
        _listeners.remove(recorded)
