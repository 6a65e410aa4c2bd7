"""Results that are kept in memory for as long as the data they were computed from have one version."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class VersionCache(Generic[Value]):
    """The results of the last version that was asked for.

    Threads share it without a lock: at worst, two of them compute the same result. A result must not be modified.
    """

    def __init__(self, *, max_entries: int) -> None:
        self._max_entries = max_entries
        self._kept: tuple[Hashable, dict[Hashable, Value]] = (None, {})  # version and results, replaced together

    def get(self, version: Hashable, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the result of this key, computed if it is not kept.

        Args:
            version: of the data; None keeps nothing.
            key: everything else that the result depends on.
            compute: called without arguments.
        """
        if version is None:
            return compute()
        kept_version, results = self._kept
        if kept_version != version or len(results) >= self._max_entries:
            results = {}
            self._kept = (version, results)
        if key not in results:
            results[key] = compute()
        return results[key]
