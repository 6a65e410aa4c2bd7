"""Search for markers in a text that still arrives."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

TICKS = "`"
MAX_TICKS = 64  # backticks; a longer run counts as several
MAX_SHARED_LEVELS = 4


@dataclass(frozen=True, slots=True)
class MarkerMatch:
    """The result of a search.

    Attributes:
        start: where the marker begins, or the index before which the text certainly has none.
        end: where the marker ends; -1 if none was found.
    """

    start: int
    end: int = -1

    @property
    def is_marker(self) -> bool:
        """Whether a marker was found."""
        return self.end >= 0


class MarkerFinder:
    """A set of words to search for; the leftmost match counts, then the longest.

    A word that the end of the text may begin is not decided, so that the result does not depend on the chunks of the
    text.

    Args:
        words: the words; empty ones are ignored.
        ticks: whether to search for runs of backticks, too.
    """

    def __init__(self, words: Iterable[str], *, ticks: bool = False) -> None:
        distinct = {word for word in words if word and not (ticks and not word.strip(TICKS))}
        ordered = sorted(distinct, key=len, reverse=True)
        # Where every alternative begins with a plain character, `re` skips to the next of them at once.
        runs = f"{TICKS}{TICKS}{{0,{MAX_TICKS - 1}}}" if ticks else ""
        self._pattern = re.compile("|".join(filter(None, (_build_pattern(ordered), runs))) or r"(?!)")
        self._beginnings = frozenset(word[:size] for word in ordered for size in range(1, len(word)))
        self._firsts = re.compile("[" + re.escape("".join({word[0] for word in ordered})) + "]") if ordered else None
        self._longest = len(ordered[0]) if ordered else 0
        self._ticks = ticks

    def find(self, text: str, at: int, *, final: bool) -> MarkerMatch:
        """Return the first marker at or behind `at`. With `final` no text follows."""
        found = self._pattern.search(text, at)
        if found and found.end() + self._longest < len(text):
            return MarkerMatch(found.start(), found.end())
        safe = len(text) if final else self._undecided_from(text, at)
        if found is None or found.start() >= safe:
            return MarkerMatch(safe)
        if not final and self._ticks and found.end() == len(text) and _is_extendable(found.group()):
            return MarkerMatch(found.start())
        return MarkerMatch(found.start(), found.end())

    def _undecided_from(self, text: str, at: int) -> int:
        if self._firsts is None:
            return len(text)
        for candidate in self._firsts.finditer(text, max(at, len(text) - self._longest + 1)):
            if text[candidate.start() :] in self._beginnings:
                return candidate.start()
        return len(text)


def _build_pattern(words: Sequence[str], levels: int = MAX_SHARED_LEVELS) -> str:
    """Return a pattern for these words, the longest first; words with the same beginning share it."""
    if levels == 0:
        return "|".join(map(re.escape, words))
    alike: dict[str, list[str]] = {}
    for word in words:
        alike.setdefault(word[0], []).append(word)
    return "|".join(_group_by_prefix(group, levels) for group in alike.values())


def _group_by_prefix(words: Sequence[str], levels: int) -> str:
    columns = zip(*words, strict=False)
    shared = next((at for at, signs in enumerate(columns) if len(set(signs)) > 1), len(words[-1]))
    rest = [word[shared:] for word in words if len(word) > shared]
    if not rest:
        return re.escape(words[0])
    optional = "?" if len(rest) < len(words) else ""
    return f"{re.escape(words[0][:shared])}(?:{_build_pattern(rest, levels - 1)}){optional}"


def _is_extendable(word: str) -> bool:
    return word.startswith(TICKS) and len(word) < MAX_TICKS


@lru_cache(maxsize=512)
def get_marker_finder(*words: str) -> MarkerFinder:
    """Return the finder of a set of words; it is cached."""
    return MarkerFinder(words)
