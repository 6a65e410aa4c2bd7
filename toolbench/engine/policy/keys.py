"""The kinds of value a policy key may take: each reads what was given, says what it accepts and how layers merge."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from toolbench.engine.json_text import write_json
from toolbench.engine.tools.choice import ToolChoice, wire_choice

LAST = "last"  # the last layer that speaks wins
DEEP = "deep"  # objects are merged leaf by leaf
UNION = "union"  # ordered, without repeats; an empty list clears

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """`read` gives the value as the policy holds it, or raises ValueError; `accepts` is the sentence shown then."""

    name: str
    accepts: str
    read: Read
    merge: str = LAST
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One row of the table of keys."""

    name: str
    kind: Kind
    default: Any
    doc: str


def spelled(text: str) -> str:
    """A name in its one spelling: trimmed, lower case, underscores."""
    return text.strip().lower().replace("-", "_")


def choice(*names: str, aliases: Mapping[str, str] | None = None) -> Kind:
    others = dict(aliases or {})

    def read(value: Any) -> str:
        word = spelled(str(value)) if isinstance(value, (str, int)) else ""
        word = others.get(word, word)
        if word not in names:
            raise ValueError
        return word

    also = f" (also {', '.join(sorted(others))})" if others else ""
    return Kind("choice", f"one of {', '.join(names)}{also}", read, choices=names)


def whole(minimum: int) -> Kind:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError
        return value

    return Kind("integer", f"a whole number, {minimum} or more", read)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        raise ValueError
    return value.strip() or None


def _pattern(value: Any) -> str | None:
    text = _text(value)
    try:
        re.compile(text or "")
    except re.error:
        raise ValueError from None
    return text


def _tool_choice(value: Any) -> Any:
    value = wire_choice(value) if isinstance(value, ToolChoice) else value
    return _object(value) if isinstance(value, Mapping) else _text(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError
    write_json(value)
    return deepcopy(dict(value))


def _aliases(value: Any) -> dict[str, str]:
    read = _object(value)
    if not all(isinstance(name, str) for name in read.values()):
        raise ValueError
    return read


def _words(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _spelled_words(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spelled(word) for word in _words(value)))


FLAG = Kind("flag", "true or false", _flag)
PATTERN = Kind("pattern", "a regular expression; blank means none", _pattern)
TEXT = Kind("text", "a text; blank means the default", _text)
TOOL_CHOICE = Kind("text or object", "a text or an object; blank means the default", _tool_choice)
OBJECT = Kind("object", "an object", _object, DEEP)
ALIASES = Kind("aliases", "an object of texts: the name the model uses to the tool's own", _aliases, DEEP)
WORDS = Kind("list", "a list of names, or one text with commas; [] clears", _words, UNION)
TRANSFORMS = Kind(
    "transforms", "an ordered list of transform names, or one text with commas; [] clears", _spelled_words, UNION
)


def methods(*names: str) -> Kind:
    """An ordered list in which the last layer wins: order is the whole point, so lists are not joined."""

    def read(value: Any) -> tuple[str, ...]:
        words = _spelled_words(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return Kind("order", f"an ordered list of {', '.join(names)}", read, choices=names)


def some_of(*names: str) -> Kind:
    """Names of a closed set; lists of several layers are joined."""

    def read(value: Any) -> tuple[str, ...]:
        words = _spelled_words(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return Kind("names", f"a list of {', '.join(names)}; [] clears", read, UNION, choices=names)


def row(kind: Kind, doc: str) -> dict[str, Any]:
    """The metadata that makes a field of Policy a row of the table of keys."""
    return {"kind": kind, "doc": doc}
