"""Cache for results that may be large: limited by the sum of their sizes as well as by their number."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MAX_CACHED_BYTES = 64_000_000
_VALUE_BYTES = 64  # memory of one JSON value, in addition to the characters of a text and to inner values


class SizedCache(Generic[Key, Value]):
    """Cache of the most recently used results, which threads may share. Results must not be modified.

    Args:
        max_entries: maximum number of results.
        max_bytes: maximum sum of the sizes; a larger result is not kept.
    """

    def __init__(self, *, max_entries: int, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Key, compute: Callable[[], tuple[Value, int]]) -> Value:
        """Return the result for this key.

        Args:
            key: everything that the result depends on.
            compute: called if the result is not cached; returns it, and the bytes that it and the key take in memory.
        """
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return entry[0]
        value, size = compute()
        with self._lock:
            if key not in self._entries and size <= self._max_bytes:
                self._entries[key] = value, size
                self._bytes += size
            while self._bytes > self._max_bytes or len(self._entries) > self._max_entries:
                self._bytes -= self._entries.popitem(last=False)[1][1]
        return value


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
