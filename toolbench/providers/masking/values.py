"""Reading and replacement of all texts inside a value, for masking.

A value is JSON, a parsed answer or a column of a row, for instance.
"""

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, cast

Value = TypeVar("Value")
TextTransform = Callable[[str], str]

_SEPARATOR = "\0\n"


def collect_texts(value: Any) -> str:
    """Return all texts in `value`, keys and bytes included, joined by `_SEPARATOR`."""
    texts: list[str] = []
    _add_texts(value, texts)
    return _SEPARATOR.join(texts)


def _add_texts(value: Any, texts: list[str]) -> None:
    value_type: Any = type(value)
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            texts.append(str(key))
            _add_texts(item, texts)
    elif value_type is list or value_type is tuple:
        for item in value:
            _add_texts(item, texts)
    elif isinstance(value, bytes):
        texts.append(value.decode("utf-8", "replace"))
    elif value is not None:
        for name in _list_field_names(value_type):
            _add_texts(getattr(value, name), texts)


def map_texts(value: Value, transform: TextTransform) -> Value:
    """Return a copy of `value` with `transform` applied to every text in it, keys and bytes included.

    Numbers, enum members, and instances of other classes than dict, list, tuple and dataclasses, such as named tuples,
    stay unchanged. An instance of a subclass of dict keeps its class.
    """
    return cast(Value, _map_value(value, transform))


def _map_value(value: Any, transform: TextTransform) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else transform(value)
    if isinstance(value, bytes):
        return transform(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        return _map_dict(value, transform)
    if type(value) in (list, tuple):
        return type(value)(_map_value(item, transform) for item in value)
    value_type: Any = type(value)
    mapped_fields = {name: _map_value(getattr(value, name), transform) for name in _list_field_names(value_type)}
    return value_type(**mapped_fields) if mapped_fields else value


def _map_dict(value: dict[Any, Any], transform: TextTransform) -> dict[Any, Any]:
    mapped = {_map_key(key, transform): _map_value(item, transform) for key, item in value.items()}
    if type(value) is dict:
        return mapped
    mapped_copy = copy.copy(value)  # the class may need other arguments than a dict, as defaultdict does
    mapped_copy.clear()
    mapped_copy.update(mapped)
    return mapped_copy


def _map_key(key: Any, transform: TextTransform) -> Any:
    return transform(key) if isinstance(key, str) else key


@lru_cache(maxsize=256)
def _list_field_names(value_type: type) -> tuple[str, ...]:
    """Return the names of the fields that a dataclass is built from; () for any other type."""
    if not is_dataclass(value_type):
        return ()
    return tuple(field.name for field in fields(value_type) if field.init)
