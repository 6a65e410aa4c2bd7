"""Cache in memory for results of data that has a version."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class VersionCache(Generic[Value]):
    """Cache of the results for the version of the data that was requested last.

    Threads may share it without a lock; at worst, two of them compute the same result. Results must not be modified.

    Args:
        max_entries: largest number of results; a further result replaces them all.
    """

    def __init__(self, *, max_entries: int) -> None:
        self._max_entries = max_entries
        # Version and its results by key. They are replaced together, so that threads need no lock.
        self._entries: tuple[Hashable, dict[Hashable, Value]] = (None, {})

    def get(self, version: Hashable, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the result for this key; compute it if it is not cached.

        Args:
            version: version of the data; None to compute without caching.
            key: everything that the result depends on, other than the version.
            compute: computes the result.
        """
        if version is None:
            return compute()
        cached_version, results = self._entries
        if cached_version == version and key in results:
            return results[key]
        if cached_version != version or len(results) >= self._max_entries:
            results = {}
            self._entries = (version, results)
        results[key] = result = compute()
        return result
