import re

from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.formats.markers import MarkerFinder

WORDS = st.lists(st.text("ab<|[(.*", min_size=1, max_size=12), max_size=12)


def list_found(markers: MarkerFinder, text: str, start: int = 0) -> list[str]:
    found = markers.find(text, start, final=True)
    return [text[found.start : found.end], *list_found(markers, text, found.end)] if found.is_marker else []


@given(WORDS, st.text("ab<|[(.*`", max_size=60))
def test_marker_finder_returns_leftmost_longest_marker(words: list[str], text: str) -> None:
    longest_first = sorted(words, key=len, reverse=True)
    pattern = "|".join([*map(re.escape, longest_first), "`+"])
    assert list_found(MarkerFinder(words, finds_backticks=True), text) == re.findall(pattern, text)


def test_marker_finder_accepts_many_words_with_shared_prefixes() -> None:
    words = ["a" * size for size in range(1, 300)]
    assert list_found(MarkerFinder(words), "b" + "a" * 250) == ["a" * 250]
