"""The filter words of the case study, for models, profiles and strategies alike.

A comma list: a word is an id or tag (exact, case does not matter), a glob with `*`, or `all`, `full`, `*`; `!word`
leaves out. Only exclusions mean everything else."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

Item = TypeVar("Item")
EVERYTHING = ("all", "full", "*")


def choose(items: Sequence[Item], words: str | Iterable[str], *, names: Callable[[Item], Iterable[str]]) -> list[Item]:
    """The items the words choose, in the order of `items`. `names` gives an item's ids and tags. Blank chooses
    nothing: what blank means is the caller's affair."""
    tokens = _tokens(words)
    wanted = [token for token in tokens if not token.startswith("!")]
    unwanted = [token[1:].strip() for token in tokens if token.startswith("!")]
    if unwanted and not wanted:
        wanted = ["all"]
    return [item for item in items if _any(wanted, item, names) and not _any(unwanted, item, names)]


def unmatched(
    items: Sequence[Item], words: str | Iterable[str], *, names: Callable[[Item], Iterable[str]]
) -> list[str]:
    """The words that match no item, for a warning."""
    return [token for token in _tokens(words) if not any(_any([token.lstrip("!")], item, names) for item in items)]


def _tokens(words: str | Iterable[str]) -> list[str]:
    parts = words.split(",") if isinstance(words, str) else words
    return [part.strip().lower() for part in parts if part.strip()]


def _any(tokens: Iterable[str], item: Item, names: Callable[[Item], Iterable[str]]) -> bool:
    known = [name.lower() for name in names(item)]
    return any(token in EVERYTHING or any(_fits(token, name) for name in known) for token in tokens)


def _fits(token: str, name: str) -> bool:
    return fnmatchcase(name, token.replace("[", "[[]")) if "*" in token else token == name
