import re

from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.formats.markers import MarkerFinder

WORDS = st.lists(st.text("ab<|[(.*", min_size=1, max_size=12), max_size=12)


def all_found(markers: MarkerFinder, text: str, at: int = 0) -> list[str]:
    found = markers.find(text, at, final=True)
    return [text[found.start : found.end], *all_found(markers, text, found.end)] if found.is_marker else []


@given(WORDS, st.text("ab<|[(.*`", max_size=60))
def test_leftmost_longest_marker_is_found_among_shared_prefixes(words: list[str], text: str) -> None:
    longest_first = sorted(words, key=len, reverse=True)
    plain = "|".join([*map(re.escape, longest_first), "`+"])
    assert all_found(MarkerFinder(words, finds_backticks=True), text) == re.findall(plain, text)


def test_finder_accepts_many_words_that_begin_with_each_other() -> None:
    words = ["a" * size for size in range(1, 300)]
    assert all_found(MarkerFinder(words), "b" + "a" * 250) == ["a" * 250]
