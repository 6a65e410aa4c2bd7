from functools import partial
from typing import Any

import pytest

from toolbench.engine.sized_cache import SizedCache, estimate_bytes


def list_computed(cache: SizedCache[str, str], *results: str) -> list[str]:
    """Request results, each as large as its text and its own key; return those that were not in the cache."""
    computed: list[str] = []

    def compute(result: str) -> tuple[str, int]:
        computed.append(result)
        return result, len(result)

    for result in results:
        assert cache.get(result, partial(compute, result)) == result
    return computed


def test_sized_cache_drops_least_recently_used_results_by_size() -> None:
    cache: SizedCache[str, str] = SizedCache(max_entries=10, max_bytes=6)
    assert list_computed(cache, "aa", "bb", "cc", "aa") == ["aa", "bb", "cc"]
    assert list_computed(cache, "dddd", "aa", "bb") == ["dddd", "bb"]


def test_sized_cache_drops_least_recently_used_results_by_number() -> None:
    cache: SizedCache[str, str] = SizedCache(max_entries=2, max_bytes=100)
    assert list_computed(cache, "a", "b", "a", "c", "a", "b") == ["a", "b", "c", "b"]


def test_sized_cache_keeps_no_result_larger_than_the_cache() -> None:
    cache: SizedCache[str, str] = SizedCache(max_entries=2, max_bytes=3)
    assert list_computed(cache, "aaa", "dddd", "dddd", "aaa") == ["aaa", "dddd", "dddd"]


def test_sized_cache_keeps_nothing_after_an_error() -> None:
    cache: SizedCache[str, str] = SizedCache(max_entries=2, max_bytes=3)

    def fail() -> tuple[str, int]:
        raise ValueError("no result")

    with pytest.raises(ValueError, match="no result"):
        cache.get("a", fail)
    assert list_computed(cache, "a") == ["a"]


def test_estimate_bytes_counts_characters_and_values_at_any_depth() -> None:
    deep: Any = "x" * 1000
    for _ in range(5000):
        deep = {"items": [deep]}
    assert estimate_bytes(deep) == 64 * 15_001 + 5 * 5000 + 1000
