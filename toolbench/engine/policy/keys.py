"""The kinds of policy keys: which values a key accepts, how they are parsed and how layers are merged."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.tools.choice import ToolChoice, to_request_choice

LAST_LAYER = "last"  # the last layer that has the key wins
BY_LEAF = "deep"  # objects are merged leaf by leaf
UNION = "union"  # lists are joined in order, without repetitions; an empty list resets the key to its default

ParseValue = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The kind of a policy key.

    Attributes:
        name: the name of the kind for documentation, such as `flag`.
        accepts: a noun phrase for the accepted values, used in error messages.
        parse_value: returns the parsed value, or None for the default; raises ValueError, TypeError or RecursionError
            for a value that is not accepted.
        merge: how the values of several layers are merged: LAST_LAYER, BY_LEAF or UNION.
        choices: the accepted words; () if the values are not limited to a list of words.
    """

    name: str
    accepts: str
    parse_value: ParseValue
    merge: str = LAST_LAYER
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeySpec:
    """The declaration of one policy key; `doc` is its description for documentation and forms."""

    name: str
    kind: KeyKind
    default: Any
    doc: str


def normalise_name(text: str) -> str:
    """Return a name in its canonical form: trimmed, in lower case, with underscores instead of hyphens."""
    return text.strip().lower().replace("-", "_")


def build_choice_kind(*names: str, aliases: Mapping[str, str] | None = None) -> KeyKind:
    """Return the kind for values that are one of these names.

    Args:
        *names: the accepted names.
        aliases: further accepted words, each with the name that it stands for.
    """
    alias_map = dict(aliases or {})

    def parse_name(value: Any) -> str:
        # Files may give an alias such as `0` or `false` as a number or a boolean.
        word = normalise_name(str(value)) if isinstance(value, (str, int)) else ""
        word = alias_map.get(word, word)
        if word not in names:
            raise ValueError
        return word

    alias_note = f" (also {', '.join(sorted(alias_map))})" if alias_map else ""
    return KeyKind("choice", f"one of {', '.join(names)}{alias_note}", parse_name, choices=names)


def build_integer_kind(minimum: int) -> KeyKind:
    """Return the kind for whole numbers of at least `minimum`."""

    def parse_integer(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError
        return value

    return KeyKind("integer", f"a whole number, {minimum} or more", parse_integer)


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
    except (re.error, OverflowError):
        raise ValueError from None
    return text


def _parse_tool_choice(value: Any) -> Any:
    value = to_request_choice(value) if isinstance(value, ToolChoice) else value
    return _parse_object(value) if isinstance(value, Mapping) else _parse_text(value)


def _parse_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError
    write_json(value)  # raises an exception if a part of the object is not JSON
    return deepcopy(dict(value))


def _parse_aliases(value: Any) -> dict[str, str]:
    aliases = _parse_object(value)
    if not all(isinstance(name, str) for name in aliases.values()):
        raise ValueError
    return aliases


def _parse_names(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(part, str) for part in names):
        raise ValueError
    return tuple(dict.fromkeys(part.strip() for part in names if part.strip()))


def _parse_normalised_names(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(normalise_name(word) for word in _parse_names(value)))


FLAG = KeyKind("flag", "true or false", _parse_flag)
PATTERN = KeyKind("pattern", "a regular expression; blank means none", _parse_pattern)
TEXT = KeyKind("text", "a text; blank means the default", _parse_text)
TOOL_CHOICE = KeyKind("text or object", "a text or an object; blank means the default", _parse_tool_choice)
OBJECT = KeyKind("object", "an object", _parse_object, BY_LEAF)
ALIAS_MAP = KeyKind(
    "aliases", "an object of texts: each name that a model uses, with the tool's own name", _parse_aliases, BY_LEAF
)
NAME_LIST = KeyKind(
    "list", "a list of names, or a text of names with commas between them; [] resets the setting", _parse_names, UNION
)
TRANSFORM_LIST = KeyKind(
    "transforms",
    "an ordered list of transform names, or a text of names with commas between them; [] resets the setting",
    _parse_normalised_names,
    UNION,
)


def build_methods_kind(*names: str) -> KeyKind:
    """Return the kind for ordered lists of these names.

    The list of the last layer wins, since a layer could not change the order of a joined list.
    """

    def parse_methods(value: Any) -> tuple[str, ...]:
        words = _parse_normalised_names(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return KeyKind("order", f"an ordered list of {', '.join(names)}", parse_methods, choices=names)


def build_set_kind(*names: str) -> KeyKind:
    """Return the kind for sets of these names; the lists of several layers are joined."""

    def parse_set(value: Any) -> tuple[str, ...]:
        words = _parse_normalised_names(value)
        if not set(words) <= set(names):
            raise ValueError
        return words

    return KeyKind("names", f"a list of {', '.join(names)}; [] resets the setting", parse_set, UNION, choices=names)


def build_metadata(kind: KeyKind, doc: str) -> dict[str, Any]:
    """Return the metadata that makes a field of Policy a key."""
    return {"kind": kind, "doc": doc}
