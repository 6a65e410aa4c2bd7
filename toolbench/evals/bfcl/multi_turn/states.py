"""States of BFCL's classes as their process writes them, and the first difference between two of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.judging.messages import render_short

ClassStates = Mapping[str, Mapping[str, Any]]  # attributes by class


@dataclass(frozen=True, slots=True)
class ObjectState:
    """An object of a BFCL class, with the fields that are compared."""

    kind: str
    fields: Mapping[str, Any]


def parse_state(written: JsonObject) -> ClassStates:
    """Return the state with Python's values, which are compared as Python does: 1 is 1.0, 1 is not "1"."""
    return {
        name: {key: _parse_value(value) for key, value in attributes.items()} for name, attributes in written.items()
    }


def find_state_difference(expected: ClassStates, made: ClassStates) -> str:
    """Return the attribute that differs, where in it, and how; "" if none does."""
    for name, attributes in expected.items():
        for attribute, value in attributes.items():
            if made[name][attribute] != value:
                places = _iter_differences(value, made[name][attribute], f"{name}.{attribute}")
                return next(places, f"{name}.{attribute} is not as it should be")
    return ""


def _parse_value(written: Any) -> Any:
    if isinstance(written, list):
        return [_parse_value(item) for item in written]
    if not isinstance(written, dict):
        return written
    if "$" not in written:
        return {key: _parse_value(value) for key, value in written.items()}
    kind, of = written["$"], written["of"]
    if kind == "dict":
        return {_parse_value(key): _parse_value(value) for key, value in of}
    if kind in ("set", "tuple"):
        items = [_parse_value(item) for item in of]
        return set(items) if kind == "set" else tuple(items)
    return ObjectState(kind, {name: _parse_value(value) for name, value in of.items()})


def _iter_differences(expected: Any, made: Any, path: str) -> Iterator[str]:
    """Yield the places that differ, as deep inside the value as possible."""
    if expected == made:
        return
    if isinstance(expected, ObjectState) and isinstance(made, ObjectState) and expected.kind == made.kind:
        yield from _iter_differences(expected.fields, made.fields, path)
    elif isinstance(expected, Mapping) and isinstance(made, Mapping):
        for key in (*expected, *(key for key in made if key not in expected)):
            if key not in made:
                yield f"{path}.{key} is missing"
            elif key not in expected:
                yield f"{path}.{key} should not be there"
            else:
                yield from _iter_differences(expected[key], made[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(made, list) and len(expected) == len(made):
        for place, (expected_item, made_item) in enumerate(zip(expected, made, strict=True)):
            yield from _iter_differences(expected_item, made_item, f"{path}[{place}]")
    else:
        yield f"{path} is {_render_value(made)} instead of {_render_value(expected)}"


def _render_value(value: Any) -> str:
    return render_short(json.loads(json.dumps(value, default=_to_plain)))


def _to_plain(value: Any) -> Any:
    return value.fields if isinstance(value, ObjectState) else list(value)
