"""Reading of JSON or YAML that users wrote, with the line of an error."""

import json
import math
import re
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep

MAX_CHARACTERS = 1_000_000
MAX_YAML_CHARACTERS = 300_000
MAX_SURROGATE_YAML_CHARACTERS = 60_000  # smaller, since surrogate escapes need PyYAML's own, slower reader
_TOO_DEEP_TEXT = f"This is nested deeper than {MAX_DEPTH} levels."
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]')  # a string, or one of { } [ ] , :
_YAML_TAG_PREFIX = "tag:yaml.org,2002:"
_ALLOWED_TAGS = frozenset(_YAML_TAG_PREFIX + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark in place of each lone surrogate, which a page cannot contain."""
    return text.encode("utf-8", "replace").decode("utf-8")


class DocumentError(Exception):
    """A document that cannot be read; the message is a sentence for users.

    Attributes:
        line: The line of the error, from 1; None if it is not known.
        column: The column of the error, from 1; None if it is not known.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.message, self.line, self.column = replace_surrogates(message), line, column
        super().__init__(f"line {line}, column {column}: {self.message}" if line else self.message)


class _PlainDataConstructor(Composer, SafeConstructor):
    """A constructor of plain data from YAML, without aliases, repeated keys or nesting over MAX_DEPTH levels.

    Aliases are refused because they can expand without limit. The levels of mappings and sequences are limited because
    the scanner visits every open level for each token, so that the time grows with the square of the levels.
    """

    levels = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        parser: Any = self
        if parser.check_event(yaml.AliasEvent):
            raise _build_error("aliases (*name) are not allowed; write the value out.", parser.peek_event().start_mark)
        is_collection = parser.check_event(yaml.SequenceStartEvent, yaml.MappingStartEvent)
        self.levels += is_collection
        if self.levels > MAX_DEPTH:
            raise _build_error(_TOO_DEEP_TEXT, parser.peek_event().start_mark)
        node = super().compose_node(parent, index)
        self.levels -= is_collection
        if node is not None and node.tag not in _ALLOWED_TAGS:
            raise _build_error(f"the tag {node.tag} is not allowed; use plain data.", node.start_mark)
        return node

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, ScalarNode) or key.tag != f"{_YAML_TAG_PREFIX}str":
                raise _build_error("a key must be a text; put it in quotes.", key.start_mark)
            if key.value in keys:
                raise _build_error(f"the key {key.value} occurs twice.", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


class _Loader(_PlainDataConstructor, yaml.CSafeLoader):
    """A loader that uses libyaml, which is several times faster than PyYAML's own reader."""

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)


class _SurrogateLoader(_PlainDataConstructor, yaml.SafeLoader):
    """A loader that accepts escapes of surrogates, which libyaml refuses. Pairs become one character, as in JSON."""

    def compose_scalar_node(self, anchor: Any) -> ScalarNode:
        node: ScalarNode = super().compose_scalar_node(anchor)
        node.value = node.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return node


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_JSON_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first_characters in (
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("bool", r"^(?:true|false)$", ["t", "f"]),
    ("int", rf"^{_JSON_INTEGER}$", list("-0123456789")),
    ("float", rf"^{_JSON_INTEGER}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", list("-0123456789")),
):  # only the values of JSON, `~` and an empty value are recognised: `no`, `12:30` and `2026-11-22` are strings
    _Loader.add_implicit_resolver(f"{_YAML_TAG_PREFIX}{_name}", re.compile(_pattern), _first_characters)
_SurrogateLoader.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
_PlainDataConstructor.add_constructor(f"{_YAML_TAG_PREFIX}float", lambda loader, node: _parse_finite(node.value))


def check_length(text: str) -> None:
    """Check that the text has at most MAX_CHARACTERS characters.

    Raises:
        DocumentError: The text is longer.
    """
    if len(text) > MAX_CHARACTERS:
        raise DocumentError(f"This is longer than {MAX_CHARACTERS:,} characters.")


def read_document(text: str) -> Any:
    """Return the value of a document: JSON if it begins with a brace or bracket, else YAML.

    Raises:
        DocumentError: The document cannot be read.
    """
    check_length(text)
    looks_like_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    try:
        return _parse_json(text.lstrip("\ufeff")) if looks_like_json else _parse_yaml(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"this is not JSON: {error.msg}.", error.lineno, error.colno) from error
    except RecursionError as error:
        raise DocumentError(_TOO_DEEP_TEXT) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _build_error(f"this is not YAML: {error.problem or error.context}.", mark) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise DocumentError(f"This cannot be read: {str(error).splitlines()[0]}.") from error


def find_line(text: str, place: Sequence[str | int]) -> int | None:
    """Return the line in which a value of a document begins, from 1.

    Args:
        text: The document.
        place: The keys and indices that lead to the value. If a key or index does not exist, the value that lacks it
            counts.

    Returns:
        The line; None if the text is empty, cannot be parsed or is too long.
    """
    try:
        node = _compose(text) if len(text) <= MAX_YAML_CHARACTERS else None
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    line = node.start_mark.line + 1 if node else None
    for step in place:
        node = _find_child(node, step)
        if node is None:
            break
        line = node.start_mark.line + 1
    return line


@lru_cache(maxsize=1)
def _compose(text: str) -> Node | None:
    """Return the root node of a YAML or JSON document, read as YAML; None if it is empty.

    Tabs, which YAML does not accept as indentation, become spaces.
    """
    node: Node | None = yaml.compose(text.replace("\t", " "), Loader=yaml.CSafeLoader)
    return node


def _find_child(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(step, int):
        return node.value[step] if step < len(node.value) else None
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None


def _parse_yaml(text: str) -> Any:
    if len(text) > MAX_YAML_CHARACTERS:
        raise DocumentError(f"YAML may have up to {MAX_YAML_CHARACTERS:,} characters: write this as JSON.")
    has_surrogate = _SURROGATE_ESCAPE.search(text) is not None
    if has_surrogate and len(text) > MAX_SURROGATE_YAML_CHARACTERS:
        raise DocumentError(
            f"YAML with surrogate escapes may have up to {MAX_SURROGATE_YAML_CHARACTERS:,} characters: "
            "write this as JSON."
        )
    return yaml.load(text, Loader=_SurrogateLoader if has_surrogate else _Loader)


def _parse_json(text: str) -> Any:
    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            raise _build_repeated_key_error(text)
        return members

    value = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite, object_pairs_hook=build_object)
    if is_too_deep(value):
        raise DocumentError(_TOO_DEEP_TEXT)
    return value


def _build_repeated_key_error(text: str) -> DocumentError:
    """Return the error for the first key that its object has twice.

    Args:
        text: JSON, valid up to the end of an object with a repeated key.
    """
    open_keys: list[set[str] | None] = []  # keys of each open object; None for an open array
    is_key = False
    for match in _JSON_TOKEN.finditer(text):
        token = match.group()
        if token in "{[":
            open_keys.append(set() if token == "{" else None)
        elif token in "}]":
            open_keys.pop()
        elif is_key and open_keys[-1] is not None and token != ":":
            key = json.loads(token)
            if key in open_keys[-1]:
                line_start = text.rfind("\n", 0, match.start()) + 1
                line = text.count("\n", 0, match.start()) + 1
                return DocumentError(f"the key {key} occurs twice.", line, match.start() - line_start + 1)
            open_keys[-1].add(key)
        is_key = token == "{" or (token == "," and open_keys[-1] is not None)
    return DocumentError("A key occurs twice.")


def _parse_finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no JSON number")
    return number


def _build_error(message: str, mark: yaml.error.Mark | None) -> DocumentError:
    return DocumentError(message, mark.line + 1, mark.column + 1) if mark else DocumentError(message)
