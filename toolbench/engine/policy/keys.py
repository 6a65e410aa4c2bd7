"""The kinds of values of policy keys: how each is parsed, what it accepts and how layers merge."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.tools.choice import ToolChoice, to_request_choice

LAST = "last"  # the last layer that speaks wins
DEEP = "deep"  # objects are merged leaf by leaf
UNION = "union"  # ordered, without repeats; an empty list clears

ParseValue = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class KeyKind:
    """A kind of value.

    Attributes:
        accepts: what is accepted, in words.
        read: returns the value as the policy holds it, or raises ValueError.
        merge: LAST, DEEP or UNION.
        choices: the accepted words; empty if any are.
    """

    name: str
    accepts: str
    read: ParseValue
    merge: str = LAST
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One policy key."""

    name: str
    kind: KeyKind
    default: Any
    doc: str


def normalise_name(text: str) -> str:
    """Return a name in its canonical form: trimmed, in lower case, with underscores."""
    return text.strip().lower().replace("-", "_")


def build_choice_kind(*names: str, aliases: Mapping[str, str] | None = None) -> KeyKind:
    """Return the kind of one of these words; `aliases` are further words by which they may be given."""
    alias_map = dict(aliases or {})

    def read(value: Any) -> str:
        word = normalise_name(str(value)) if isinstance(value, (str, int)) else ""
        word = alias_map.get(word, word)
        if word not in names:
            raise ValueError
        return word

    also = f" (also {', '.join(sorted(alias_map))})" if alias_map else ""
    return KeyKind("choice", f"one of {', '.join(names)}{also}", read, choices=names)


def build_integer_kind(minimum: int) -> KeyKind:
    """Return the kind of whole numbers from a minimum."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError
        return value

    return KeyKind("integer", f"a whole number, {minimum} or more", read)


def _parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _parse_text(value: Any) -> str | None:
    if not isinstance(value, str):
        raise ValueError
    return value.strip() or None


def _parse_pattern(value: Any) -> str | None:
    text = _parse_text(value)
    try:
        re.compile(text or "")
    except re.error:
        raise ValueError from None
    return text


def _parse_tool_choice(value: Any) -> Any:
    value = to_request_choice(value) if isinstance(value, ToolChoice) else value
    return _parse_object(value) if isinstance(value, Mapping) else _parse_text(value)


def _parse_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError
    write_json(value)
    return deepcopy(dict(value))


def _parse_aliases(value: Any) -> dict[str, str]:
    read = _parse_object(value)
    if not all(isinstance(name, str) for name in read.values()):
        raise ValueError
    return read


def _parse_words(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _parse_normalised_words(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(normalise_name(word) for word in _parse_words(value)))


FLAG = KeyKind("flag", "true or false", _parse_flag)
PATTERN = KeyKind("pattern", "a regular expression; blank means none", _parse_pattern)
TEXT = KeyKind("text", "a text; blank means the default", _parse_text)
TOOL_CHOICE = KeyKind("text or object", "a text or an object; blank means the default", _parse_tool_choice)
OBJECT = KeyKind("object", "an object", _parse_object, DEEP)
ALIAS_MAP = KeyKind("aliases", "an object of texts: the name the model uses to the tool's own", _parse_aliases, DEEP)
NAME_LIST = KeyKind("list", "a list of names, or one text with commas; [] clears", _parse_words, UNION)
TRANSFORM_LIST = KeyKind(
    "transforms",
    "an ordered list of transform names, or one text with commas; [] clears",
    _parse_normalised_words,
    UNION,
)


def build_methods_kind(*names: str) -> KeyKind:
    """Return the kind of ordered lists of these words.

    The last layer wins, since joined lists would have no order.
    """

    def read(value: Any) -> tuple[str, ...]:
        words = _parse_normalised_words(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return KeyKind("order", f"an ordered list of {', '.join(names)}", read, choices=names)


def build_set_kind(*names: str) -> KeyKind:
    """Return the kind of sets of these words; lists of several layers are joined."""

    def read(value: Any) -> tuple[str, ...]:
        words = _parse_normalised_words(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return KeyKind("names", f"a list of {', '.join(names)}; [] clears", read, UNION, choices=names)


def build_metadata(kind: KeyKind, doc: str) -> dict[str, Any]:
    """Return the metadata by which a field of Policy becomes a key."""
    return {"kind": kind, "doc": doc}
