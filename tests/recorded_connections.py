"""Which addresses this process connects to, as the interpreter itself reports it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_listeners: list[list[object]] = []


def _record_event(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook cannot be removed: it hears nothing while nobody listens."""
    if event in ("socket.connect", "socket.getaddrinfo"):
        where = arguments[1] if event == "socket.connect" else arguments[:2]
        if isinstance(where, tuple):  # the path of a unix socket is a text
            for heard in _listeners:
                heard.append(where)


@cache
def _install_hook() -> None:
    sys.addaudithook(_record_event)


@contextmanager
def record_connections() -> Iterator[list[object]]:
    """Give a list to which every TCP connection and every look-up of a host is added meanwhile."""
    _install_hook()
    heard: list[object] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners.remove(heard)
