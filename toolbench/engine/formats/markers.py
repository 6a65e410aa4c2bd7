"""Search for markers in a text that arrives in chunks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

BACKTICK = "`"
MAX_BACKTICKS = 64  # backticks of one run; a longer run counts as several
MAX_PREFIX_LEVELS = 4  # depth of nested groups in a pattern; a group has the words with a common beginning


@dataclass(frozen=True, slots=True)
class MarkerMatch:
    """The result of a search.

    Attributes:
        start: the index at which the marker begins. If none was found, no marker begins before this index, whatever
            text follows.
        end: the index after the marker; -1 if none was found.
    """

    start: int
    end: int = -1

    @property
    def is_marker(self) -> bool:
        """Whether a marker was found."""
        return self.end >= 0


class MarkerFinder:
    """A finder of the first of several words; of words that begin at the same place, the longest counts.

    If the text ends with the beginning of a word, nothing is found there until more text arrives, so that the result
    does not depend on the chunks.

    Args:
        words: the words. Empty words are ignored; with `finds_backticks`, words of backticks alone are ignored, too.
        finds_backticks: whether to search for runs of backticks, too.
    """

    def __init__(self, words: Iterable[str], *, finds_backticks: bool = False) -> None:
        distinct_words = {word for word in words if word and not (finds_backticks and not word.strip(BACKTICK))}
        ordered_words = sorted(distinct_words, key=len, reverse=True)
        # `re` searches faster if every alternative begins with a literal character.
        backticks_pattern = f"{BACKTICK}{BACKTICK}{{0,{MAX_BACKTICKS - 1}}}" if finds_backticks else ""
        self._pattern = re.compile(
            "|".join(filter(None, (_build_pattern(ordered_words), backticks_pattern))) or r"(?!)"
        )
        self._beginnings = frozenset(word[:size] for word in ordered_words for size in range(1, len(word)))
        self._first_characters = (
            re.compile("[" + re.escape("".join({word[0] for word in ordered_words})) + "]") if ordered_words else None
        )
        self._max_length = len(ordered_words[0]) if ordered_words else 0
        self._finds_backticks = finds_backticks

    def find(self, text: str, index: int, *, final: bool) -> MarkerMatch:
        """Return the first marker at or after `index`. `final` says that no text follows."""
        match = self._pattern.search(text, index)
        if match and match.end() + self._max_length < len(text):
            return MarkerMatch(match.start(), match.end())
        decided_end = len(text) if final else self._find_undecided_start(text, index)
        if match is None or match.start() >= decided_end:
            return MarkerMatch(decided_end)
        if not final and self._finds_backticks and match.end() == len(text) and _is_extendable(match.group()):
            return MarkerMatch(match.start())
        return MarkerMatch(match.start(), match.end())

    def _find_undecided_start(self, text: str, index: int) -> int:
        """Return the index of an unfinished word at the end of the text; without one, the length of the text."""
        if self._first_characters is None:
            return len(text)
        for candidate in self._first_characters.finditer(text, max(index, len(text) - self._max_length + 1)):
            if text[candidate.start() :] in self._beginnings:
                return candidate.start()
        return len(text)


def _build_pattern(words: Sequence[str], levels: int = MAX_PREFIX_LEVELS) -> str:
    """Return a pattern that matches any of these words, which are sorted by length, the longest first.

    The common beginning of words occurs once in the pattern, before a group of their ends. Such groups are nested up to
    `levels` deep.
    """
    if levels == 0:
        return "|".join(map(re.escape, words))
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[0], []).append(word)
    return "|".join(_build_prefix_pattern(group, levels) for group in groups.values())


def _build_prefix_pattern(words: Sequence[str], levels: int) -> str:
    """Return a pattern of the common beginning of words with the same first character, and of their ends."""
    characters_by_position = zip(*words, strict=False)
    prefix_length = next(
        (index for index, characters in enumerate(characters_by_position) if len(set(characters)) > 1), len(words[-1])
    )
    suffixes = [word[prefix_length:] for word in words if len(word) > prefix_length]
    if not suffixes:
        return re.escape(words[0])
    optional = "?" if len(suffixes) < len(words) else ""
    return f"{re.escape(words[0][:prefix_length])}(?:{_build_pattern(suffixes, levels - 1)}){optional}"


def _is_extendable(word: str) -> bool:
    """Return whether a word is a run of backticks to which a further backtick would belong."""
    return word.startswith(BACKTICK) and len(word) < MAX_BACKTICKS


@lru_cache(maxsize=512)
def get_marker_finder(*words: str) -> MarkerFinder:
    """Return a finder of these words. Results are cached."""
    return MarkerFinder(words)
