"""Search for markers in a text that arrives in chunks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

TICKS = "`"
MAX_TICKS = 64  # backticks; a longer run counts as several
MAX_SHARED_LEVELS = 4  # nested groups of words with a common beginning in a pattern


@dataclass(frozen=True, slots=True)
class MarkerMatch:
    """The result of a search.

    Attributes:
        start: the index at which the marker begins, or, if none was found, the index before which there certainly is
            none.
        end: the index after the marker; -1 if none was found.
    """

    start: int
    end: int = -1

    @property
    def is_marker(self) -> bool:
        """Whether a marker was found."""
        return self.end >= 0


class MarkerFinder:
    """A set of words to search for; the leftmost match counts, then the longest.

    If the text ends with the beginning of a word, nothing is found there until more text arrives, so that the result
    does not depend on the chunks.

    Args:
        words: the words; empty ones are ignored.
        ticks: whether to search for runs of backticks, too.
    """

    def __init__(self, words: Iterable[str], *, ticks: bool = False) -> None:
        distinct = {word for word in words if word and not (ticks and not word.strip(TICKS))}
        ordered = sorted(distinct, key=len, reverse=True)
        # `re` searches faster if every alternative begins with a literal character.
        runs = f"{TICKS}{TICKS}{{0,{MAX_TICKS - 1}}}" if ticks else ""
        self._pattern = re.compile("|".join(filter(None, (_build_pattern(ordered), runs))) or r"(?!)")
        self._beginnings = frozenset(word[:size] for word in ordered for size in range(1, len(word)))
        self._first_characters = (
            re.compile("[" + re.escape("".join({word[0] for word in ordered})) + "]") if ordered else None
        )
        self._max_length = len(ordered[0]) if ordered else 0
        self._ticks = ticks

    def find(self, text: str, at: int, *, final: bool) -> MarkerMatch:
        """Return the first marker at or after the index `at`. `final` says that no text follows."""
        match = self._pattern.search(text, at)
        if match and match.end() + self._max_length < len(text):
            return MarkerMatch(match.start(), match.end())
        decided_end = len(text) if final else self._find_undecided_start(text, at)
        if match is None or match.start() >= decided_end:
            return MarkerMatch(decided_end)
        if not final and self._ticks and match.end() == len(text) and _is_extendable(match.group()):
            return MarkerMatch(match.start())
        return MarkerMatch(match.start(), match.end())

    def _find_undecided_start(self, text: str, at: int) -> int:
        if self._first_characters is None:
            return len(text)
        for candidate in self._first_characters.finditer(text, max(at, len(text) - self._max_length + 1)):
            if text[candidate.start() :] in self._beginnings:
                return candidate.start()
        return len(text)


def _build_pattern(words: Sequence[str], levels: int = MAX_SHARED_LEVELS) -> str:
    """Return a pattern for these words, the longest first; words with the same beginning share it."""
    if levels == 0:
        return "|".join(map(re.escape, words))
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[0], []).append(word)
    return "|".join(_group_by_prefix(group, levels) for group in groups.values())


def _group_by_prefix(words: Sequence[str], levels: int) -> str:
    columns = zip(*words, strict=False)
    prefix_length = next(
        (index for index, characters in enumerate(columns) if len(set(characters)) > 1), len(words[-1])
    )
    suffixes = [word[prefix_length:] for word in words if len(word) > prefix_length]
    if not suffixes:
        return re.escape(words[0])
    optional = "?" if len(suffixes) < len(words) else ""
    return f"{re.escape(words[0][:prefix_length])}(?:{_build_pattern(suffixes, levels - 1)}){optional}"


def _is_extendable(word: str) -> bool:
    return word.startswith(TICKS) and len(word) < MAX_TICKS


@lru_cache(maxsize=512)
def get_marker_finder(*words: str) -> MarkerFinder:
    """Return a finder of these words. Results are cached."""
    return MarkerFinder(words)
