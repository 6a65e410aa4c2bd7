"""Cache for results that may be large: limited by the sum of their sizes as well as by their number."""

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from operator import itemgetter
from threading import Lock
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MAX_CACHED_BYTES = 64_000_000
_VALUE_BYTES = 64  # memory of one JSON value, in addition to the characters of a text and to inner values


class SizedCache(Generic[Key, Value]):
    """Cache of the most recently used results, which threads may share. Results must not be modified.

    Args:
        max_entries: maximum number of results. So each counts as at least `max_bytes` / `max_entries` bytes.
        max_bytes: maximum sum of the sizes; a larger result is not kept.
    """

    def __init__(self, *, max_entries: int, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._min_bytes = max_bytes / max_entries
        self._entries: LRUCache[Key, tuple[Value, float]] = LRUCache(max_bytes, getsizeof=itemgetter(1))
        self._lock = Lock()

    def get(self, key: Key, compute: Callable[[], tuple[Value, int]]) -> Value:
        """Return the result for this key.

        Args:
            key: everything that the result depends on.
            compute: called if the result is not cached; returns it, and the bytes that it and the key take in memory.
        """
        with self._lock:
            entry = self._entries.get(key)
        if entry is None:
            value, size = compute()
            entry = value, max(size, self._min_bytes)
            with self._lock, suppress(ValueError):  # it is larger than the cache
                self._entries[key] = entry
        return entry[0]


def estimate_bytes(value: Any) -> int:
    """Return about how many bytes a JSON value takes in memory; it may be nested to any depth."""
    pending_values, total = [value], 0
    while pending_values:
        value = pending_values.pop()
        total += _VALUE_BYTES
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, Mapping):
            pending_values += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple)):
            pending_values += value
    return total
