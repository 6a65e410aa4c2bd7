"""The filter words of the case study, for providers, models, profiles and strategies.

A filter is a comma-separated list. A word is an id or tag (exact, case is ignored), a glob with `*`, or one of `all`,
`full` and `*`, which select all items. `!word` excludes what `word` selects. A filter that has only exclusions selects
all other items. An id that contains commas is one word.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar

Item = TypeVar("Item")
ALL_WORDS = ("all", "full", "*")
_MAX_SIMILAR_WORDS = 3
_SPACE_AFTER_EXCLAMATION = re.compile(r"^!\s+")


def filter_by_names(
    items: Sequence[Item], words: str | Iterable[str], *, names: Callable[[Item], Iterable[str]]
) -> list[Item]:
    """Return the items that the words select, in the order of `items`.

    Blank words are ignored, so a blank filter selects nothing. A caller that gives a blank filter another meaning has
    to check for it first.

    Args:
        items: The items.
        words: The filter, as a comma-separated text or as separate words.
        names: Returns an item's ids and tags.
    """
    tokens = _split_words(words, items, names)
    included = [token for token in tokens if not token.startswith("!")]
    excluded = [token[1:] for token in tokens if token.startswith("!")]
    if excluded and not included:
        included = ["all"]
    return [item for item in items if _matches_any(included, item, names) and not _matches_any(excluded, item, names)]


def list_unmatched_words(
    items: Sequence[Item], words: str | Iterable[str], *, names: Callable[[Item], Iterable[str]]
) -> list[str]:
    """Return the words that match no item, for a warning, in lower case and with their `!`."""
    return [
        token
        for token in _split_words(words, items, names)
        if not any(_matches_any([token.lstrip("!")], item, names) for item in items)
    ]


def find_similar_words(word: str, known_words: Iterable[str]) -> tuple[str, ...]:
    """Return the known words most similar to an unknown one, at most three, the most similar first.

    If none is similar to the whole word, its parts, which `/` and `:` separate, are compared one after the other until
    one has similar words. Case is ignored, and so is a `!` before the word.

    Args:
        word: The unknown word.
        known_words: The words to choose from.

    Returns:
        The similar words as spelt in `known_words`; empty if there are none.
    """
    by_spelling = {name.lower(): name for name in known_words}
    whole_word = word.lower().lstrip("!")
    for part in dict.fromkeys((whole_word, *re.split(r"[/:]", whole_word))):
        if similar := get_close_matches(part, by_spelling, _MAX_SIMILAR_WORDS):
            return tuple(by_spelling[name] for name in similar)
    return ()


def _split_words(
    words: str | Iterable[str], items: Sequence[Item], names: Callable[[Item], Iterable[str]]
) -> list[str]:
    """Return the words in lower case, without blank ones and without space after a `!`.

    A comma inside a name of an item does not separate words. If several names fit, the longest one is the word.
    """
    parts = [
        _SPACE_AFTER_EXCLAMATION.sub("!", part.strip().lower())
        for part in (words.split(",") if isinstance(words, str) else words)
    ]
    comma_names = {_normalise_name(name) for item in items for name in names(item) if "," in name}
    max_size = max((name.count(",") + 1 for name in comma_names), default=1)
    tokens: list[str] = []
    while parts:
        sizes = range(max_size, 1, -1)
        candidates = {size: _normalise_name(",".join(parts[:size])) for size in sizes}
        size = next((size for size, name in candidates.items() if name.lstrip("!") in comma_names), 1)
        tokens.append(candidates.get(size, parts[0]))
        parts = parts[size:]
    return [token for token in tokens if token]


def _normalise_name(name: str) -> str:
    """Return the name in lower case, with one space after every comma."""
    return ", ".join(part.strip() for part in name.lower().split(","))


def _matches_any(tokens: Iterable[str], item: Item, names: Callable[[Item], Iterable[str]]) -> bool:
    item_names = [_normalise_name(name) for name in names(item)]
    return any(token in ALL_WORDS or any(_matches(token, name) for name in item_names) for token in tokens)


def _matches(token: str, name: str) -> bool:
    return fnmatchcase(name, token.replace("[", "[[]")) if "*" in token else token == name
