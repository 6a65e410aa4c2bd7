"""Masking of the texts inside values: parsed answers, JSON, columns of a row."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, cast

Value = TypeVar("Value")
TextTransform = Callable[[str], str]

_SEPARATOR = "\0\n"


def collect_texts(value: Any) -> str:
    """Return all texts in `value`, keys and bytes included, joined with separators."""
    texts: list[str] = []
    _collect(value, texts)
    return _SEPARATOR.join(texts)


def _collect(value: Any, texts: list[str]) -> None:
    kind: Any = type(value)
    if kind is str:
        texts.append(value)
    elif kind is dict:
        for key, item in value.items():
            texts.append(str(key))
            _collect(item, texts)
    elif kind is list or kind is tuple:
        for item in value:
            _collect(item, texts)
    elif kind is bytes:
        texts.append(value.decode("utf-8", "replace"))
    elif value is not None:
        for name in _list_field_names(kind):
            _collect(getattr(value, name), texts)


def map_texts(value: Value, change: TextTransform) -> Value:
    """Return `value` with `change` applied to every text in it. Values of unknown types stay unchanged."""
    return cast(Value, _map_value(value, change))


def _map_value(value: Any, change: TextTransform) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, bytes):
        return change(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        return type(value)({_map_key(key, change): _map_value(item, change) for key, item in value.items()})
    if type(value) in (list, tuple):
        return type(value)(_map_value(item, change) for item in value)
    kind: Any = type(value)
    made = {name: _map_value(getattr(value, name), change) for name in _list_field_names(kind)}
    return kind(**made) if made else value


def _map_key(key: Any, change: TextTransform) -> Any:
    return change(key) if isinstance(key, str) else key


@lru_cache(maxsize=256)
def _list_field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; () for any other type."""
    if not is_dataclass(kind):
        return ()
    return tuple(field.name for field in fields(kind) if field.init)
