from collections.abc import Callable

from toolbench.lab.metrics.version_cache import VersionCache


def count_calls(calls: list[str], name: str) -> Callable[[], str]:
    def compute() -> str:
        calls.append(name)
        return name

    return compute


def get_all(cache: VersionCache[str], version: int | None, names: str) -> str:
    calls: list[str] = []
    for name in names:
        assert cache.get(version, name, count_calls(calls, name)) == name
    return "".join(calls)


def test_version_cache_get_computes_once_per_version() -> None:
    cache: VersionCache[str] = VersionCache(max_entries=2)
    assert get_all(cache, 1, "ababab") == "ab"
    assert get_all(cache, 2, "aa") == "a"


def test_version_cache_get_empties_full_cache() -> None:
    cache: VersionCache[str] = VersionCache(max_entries=1)
    assert get_all(cache, 1, "aaba") == "aba"


def test_version_cache_get_without_version_computes_each_time() -> None:
    assert get_all(VersionCache(max_entries=2), None, "aa") == "aa"
