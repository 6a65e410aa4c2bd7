"""States of BFCL's classes: parsing of the JSON of environment.py, and the difference of two states."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.judging.messages import render_short

ClassStates = Mapping[str, Mapping[str, Any]]  # by class, its values by attribute


@dataclass(frozen=True, slots=True)
class ObjectState:
    """An object in a state, such as a file or a folder.

    Attributes:
        kind: The name of its class.
        fields: The values of the fields that BFCL compares.
    """

    kind: str
    fields: Mapping[str, Any]


def parse_state(state: JsonObject) -> ClassStates:
    """Return a state from the JSON of environment.py, with Python's types and ObjectState."""
    return {
        class_name: {name: _parse_value(value) for name, value in attributes.items()}
        for class_name, attributes in state.items()
    }


def find_state_difference(expected: ClassStates, made: ClassStates) -> str:
    """Return the first difference between two states as a phrase with its path; "" if there is none."""
    for class_name, attributes in expected.items():
        for attribute, value in attributes.items():
            if made[class_name][attribute] != value:
                differences = _iter_differences(value, made[class_name][attribute], f"{class_name}.{attribute}")
                return next(differences, f"{class_name}.{attribute} differs from the expected state")
    return ""


def _parse_value(json_value: Any) -> Any:
    if isinstance(json_value, list):
        return [_parse_value(item) for item in json_value]
    if not isinstance(json_value, dict):
        return json_value
    if "$" not in json_value:
        return {key: _parse_value(value) for key, value in json_value.items()}
    kind, content = json_value["$"], json_value["of"]
    if kind == "dict":
        return {_parse_value(key): _parse_value(value) for key, value in content}
    if kind in ("set", "tuple"):
        items = [_parse_value(item) for item in content]
        return set(items) if kind == "set" else tuple(items)
    return ObjectState(kind, {name: _parse_value(value) for name, value in content.items()})


def _iter_differences(expected: Any, made: Any, path: str) -> Iterator[str]:
    """Yield the differences as phrases, each with the path of the innermost values that differ."""
    if expected == made:
        return
    if isinstance(expected, ObjectState) and isinstance(made, ObjectState) and expected.kind == made.kind:
        yield from _iter_differences(expected.fields, made.fields, path)
    elif isinstance(expected, Mapping) and isinstance(made, Mapping):
        for key in (*expected, *(key for key in made if key not in expected)):
            if key not in made:
                yield f"{path}.{key} is missing"
            elif key not in expected:
                yield f"{path}.{key} is not expected"
            else:
                yield from _iter_differences(expected[key], made[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(made, list) and len(expected) == len(made):
        for index, (expected_item, made_item) in enumerate(zip(expected, made, strict=True)):
            yield from _iter_differences(expected_item, made_item, f"{path}[{index}]")
    else:
        yield f"{path} is {_render_value(made)} instead of {_render_value(expected)}"


def _render_value(value: Any) -> str:
    return render_short(json.loads(json.dumps(value, default=_to_plain)))


def _to_plain(value: Any) -> Any:
    return value.fields if isinstance(value, ObjectState) else list(value)
