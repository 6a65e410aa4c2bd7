"""Merging of policy layers, which records the layer of each part of a value, and merging of request options."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from toolbench.engine.policy.keys import BY_LEAF, UNION, KeySpec
from toolbench.engine.types import JsonObject

ENGINE_LAYER = "engine"  # the layer of values that no patch sets
# Keys of the request body that options cannot set, since the loop and the method set them.
RESERVED_KEYS = frozenset({"model", "messages", "tools", "tool_choice", "response_format"})


@dataclass(frozen=True, slots=True)
class OverriddenSetting:
    """A setting of one layer that a later one replaced.

    Attributes:
        key: the policy key, or for a leaf of an object its dotted name, such as `request_overrides.seed`. A list or
            object that is reset to the default as a whole has only the key.
        layer: the earlier layer; for a list or object that is reset, the layer of its last part.
        value: the value that was replaced.
        by_layer: the later layer.
        by_value: the new value: the default after a reset, None for a leaf that no longer exists.
    """

    key: str
    layer: str
    value: Any
    by_layer: str
    by_value: Any


class LayeredValue:
    """The value of one policy key, merged layer by layer, with the layer of each part.

    Parts are the elements of a list with the merge rule UNION and the leaves of an object with the merge rule BY_LEAF.
    """

    def __init__(self, key_spec: KeySpec) -> None:
        self.value: Any = deepcopy(key_spec.default)
        self._key_spec = key_spec
        self._layer = ENGINE_LAYER
        self._layer_by_part: dict[str, str] = {}  # by list element or dotted leaf name

    def merge_layer(self, layer: str, raw_value: Any) -> list[OverriddenSetting]:
        """Merge the value of the next layer and return the settings that it replaced.

        None resets the value to the default; for a key with the merge rule UNION, so does an empty list.

        Raises:
            ValueError: the value is not accepted; the message says what is accepted.
        """
        merge = self._key_spec.kind.merge
        value = self._parse_value(raw_value)
        if raw_value is None or (merge == UNION and not value):
            return self._reset(layer)
        if merge == BY_LEAF:
            return self._merge_object(layer, value)
        if merge == UNION:
            return self._merge_list(layer, value)
        return self._replace(layer, value)

    def iterate_origins(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each part (`key`, `key[0]` or `key.leaf`) and its layer."""
        name = self._key_spec.name
        if not self._layer_by_part:
            yield name, self._layer
        elif self._key_spec.kind.merge == UNION:
            yield from ((f"{name}[{index}]", layer) for index, layer in enumerate(self._layer_by_part.values()))
        else:
            yield from ((f"{name}.{leaf}", layer) for leaf, layer in self._layer_by_part.items())

    def _parse_value(self, raw_value: Any) -> Any:
        if raw_value is None:
            return deepcopy(self._key_spec.default)
        try:
            value = self._key_spec.kind.parse_value(raw_value)
        except (ValueError, TypeError, RecursionError):
            raise ValueError(
                f"{_render_value(raw_value)} is not accepted; it must be {self._key_spec.kind.accepts}"
            ) from None
        return deepcopy(self._key_spec.default) if value is None else value

    def _replace(self, layer: str, value: Any) -> list[OverriddenSetting]:
        overridden = self._list_overridden(self._layer, layer, value)
        self._layer, self.value = layer, value
        return overridden

    def _reset(self, layer: str) -> list[OverriddenSetting]:
        last_layer = next(reversed(self._layer_by_part.values()), self._layer)
        default = deepcopy(self._key_spec.default)
        overridden = self._list_overridden(last_layer, layer, default)
        self._layer, self.value, self._layer_by_part = layer, default, {}
        return overridden

    def _list_overridden(self, earlier_layer: str, layer: str, value: Any) -> list[OverriddenSetting]:
        """Return the whole value as one replaced setting; [] if it was the default or is equal to `value`."""
        if earlier_layer == ENGINE_LAYER or self.value == value:
            return []
        return [OverriddenSetting(self._key_spec.name, earlier_layer, self.value, layer, value)]

    def _merge_list(self, layer: str, names: tuple[str, ...]) -> list[OverriddenSetting]:
        for name in names:
            self._layer_by_part.setdefault(name, layer)
        self.value = tuple(self._layer_by_part)
        return []

    def _merge_object(self, layer: str, patch: JsonObject) -> list[OverriddenSetting]:
        """Merge an object leaf by leaf and return the leaves that it replaced."""
        value_before, self.value = self.value, merge_objects(self.value, patch)
        leaves_after, patched_leaves = dict(iterate_leaves(self.value)), dict(iterate_leaves(patch))
        overridden = [
            OverriddenSetting(
                f"{self._key_spec.name}.{leaf}", self._layer_by_part[leaf], value, layer, leaves_after.get(leaf)
            )
            for leaf, value in iterate_leaves(value_before)
            if leaf not in leaves_after or leaves_after[leaf] != value
        ]
        self._layer_by_part = {
            leaf: layer if leaf in patched_leaves else self._layer_by_part[leaf] for leaf in leaves_after
        }
        return overridden


def merge_objects(base: JsonObject, patch: JsonObject) -> JsonObject:
    """Return `base` with `patch` merged into it: objects are merged at every depth, other values replaced.

    The result is a new object with copies of the values of `patch`; it shares the values that only `base` has.
    """
    result = dict(base)
    for name, value in patch.items():
        base_value = result.get(name)
        result[name] = (
            merge_objects(base_value, value)
            if isinstance(base_value, dict) and isinstance(value, dict)
            else deepcopy(value)
        )
    return result


def iterate_leaves(value: JsonObject, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name of each leaf, such as `provider.order`, and its value; an empty object is a leaf."""
    for name, child in value.items():
        if isinstance(child, dict) and child:
            yield from iterate_leaves(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", child


def _render_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def merge_options(defaults: Mapping[str, Any], *overrides: Mapping[str, Any]) -> JsonObject:
    """Return request options, merged as by `merge_objects`, without the top-level keys in RESERVED_KEYS.

    Later overrides have priority over earlier ones.
    """
    options: JsonObject = {}
    for layer in (defaults, *overrides):
        options = merge_objects(options, {key: value for key, value in layer.items() if key not in RESERVED_KEYS})
    return options
