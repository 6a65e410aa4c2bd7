"""Merging of layers: one policy key with the layer that each part came from, and options of a request."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from toolbench.engine.policy.keys import DEEP, UNION, KeySpec
from toolbench.engine.types import JsonObject

ENGINE_LAYER = "engine"
RESERVED_KEYS = frozenset({"model", "messages", "tools", "tool_choice", "response_format"})


@dataclass(frozen=True, slots=True)
class OverriddenSetting:
    """A setting of one layer that a later one replaced.

    Attributes:
        key: dotted name of a leaf; a cleared list or object has one name.
    """

    key: str
    layer: str
    value: Any
    by_layer: str
    by_value: Any


class LayeredValue:
    """The value of one policy key while layers are laid over it, with the layer of each part."""

    def __init__(self, row: KeySpec) -> None:
        self.value: Any = deepcopy(row.default)
        self._row = row
        self._owner = ENGINE_LAYER
        self._parts: dict[str, str] = {}  # a list's element or an object's leaf -> its layer

    def put(self, layer: str, given: Any) -> list[OverriddenSetting]:
        """Lay a value over the earlier layers and return the settings that it replaced.

        Raises:
            ValueError: the value is not accepted; the text says what is.
        """
        merge = self._row.kind.merge
        value = self._read(given)
        if given is None or (merge == UNION and not value):
            return self._clear(layer)
        if merge == DEEP:
            return self._merge(layer, value)
        if merge == UNION:
            return self._join(layer, value)
        return self._replace(layer, value)

    def origins(self) -> Iterator[tuple[str, str]]:
        """Yield the dotted name of each part and its layer."""
        name = self._row.name
        if not self._parts:
            yield name, self._owner
        elif self._row.kind.merge == UNION:
            yield from ((f"{name}[{place}]", layer) for place, layer in enumerate(self._parts.values()))
        else:
            yield from ((f"{name}.{leaf}", layer) for leaf, layer in self._parts.items())

    def _read(self, given: Any) -> Any:
        if given is None:
            return deepcopy(self._row.default)
        try:
            value = self._row.kind.read(given)
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{_copy_value(given)} is not accepted; it must be {self._row.kind.accepts}") from None
        return deepcopy(self._row.default) if value is None else value

    def _replace(self, layer: str, value: Any) -> list[OverriddenSetting]:
        lost = self._lost(self._owner, layer, value)
        self._owner, self.value = layer, value
        return lost

    def _clear(self, layer: str) -> list[OverriddenSetting]:
        last_speaker = next(reversed(self._parts.values()), self._owner)
        default = deepcopy(self._row.default)
        lost = self._lost(last_speaker, layer, default)
        self._owner, self.value, self._parts = layer, default, {}
        return lost

    def _lost(self, owner: str, layer: str, value: Any) -> list[OverriddenSetting]:
        if owner == ENGINE_LAYER or self.value == value:
            return []
        return [OverriddenSetting(self._row.name, owner, self.value, layer, value)]

    def _join(self, layer: str, words: tuple[str, ...]) -> list[OverriddenSetting]:
        for word in words:
            self._parts.setdefault(word, layer)
        self.value = tuple(self._parts)
        return []

    def _merge(self, layer: str, patch: JsonObject) -> list[OverriddenSetting]:
        before, self.value = self.value, merge_objects(self.value, patch)
        after, touched = dict(iterate_leaves(self.value)), dict(iterate_leaves(patch))
        lost = [
            OverriddenSetting(f"{self._row.name}.{leaf}", self._parts[leaf], value, layer, after.get(leaf))
            for leaf, value in iterate_leaves(before)
            if leaf not in after or after[leaf] != value
        ]
        self._parts = {leaf: layer if leaf in touched else self._parts[leaf] for leaf in after}
        return lost


def merge_objects(under: JsonObject, over: JsonObject) -> JsonObject:
    """Return a new object with `over` laid on `under`: objects are merged leaf by leaf, other values replaced."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        result[name] = (
            merge_objects(below, value) if isinstance(below, dict) and isinstance(value, dict) else deepcopy(value)
        )
    return result


def iterate_leaves(value: JsonObject, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted name and value of everything that is not a non-empty object."""
    for name, child in value.items():
        if isinstance(child, dict) and child:
            yield from iterate_leaves(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", child


def _copy_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def merge_options(defaults: Mapping[str, Any], *overrides: Mapping[str, Any]) -> JsonObject:
    """Return the merged options: objects are merged at every depth, other values replaced by later ones.

    Top-level keys in RESERVED_KEYS are dropped.
    """
    options: JsonObject = {}
    for layer in (defaults, *overrides):
        options = merge_objects(options, {key: value for key, value in layer.items() if key not in RESERVED_KEYS})
    return options
