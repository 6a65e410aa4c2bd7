"""States of BFCL's classes as they come out of their process, and where two of them differ first."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.evals.judging.messages import shown

State = Mapping[str, Mapping[str, Any]]  # attributes by class


@dataclass(frozen=True, slots=True)
class Stored:
    """An object of a class of BFCL's, by the fields in which it is compared."""

    kind: str
    fields: Mapping[str, Any]


def read_state(written: JsonObject) -> State:
    """With Python's own values, which are compared as Python compares them: 1 is 1.0, 1 is not "1"."""
    return {name: {key: _read(value) for key, value in attributes.items()} for name, attributes in written.items()}


def first_difference(expected: State, made: State) -> str:
    """Which attribute differs, where in it, and how; "" where none does."""
    for name, attributes in expected.items():
        for attribute, value in attributes.items():
            if made[name][attribute] != value:
                places = _differing(value, made[name][attribute], f"{name}.{attribute}")
                return next(places, f"{name}.{attribute} is not as it should be")
    return ""


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(item) for item in written]
    if not isinstance(written, dict):
        return written
    if "$" not in written:
        return {key: _read(value) for key, value in written.items()}
    kind, of = written["$"], written["of"]
    if kind == "dict":
        return {_read(key): _read(value) for key, value in of}
    if kind in ("set", "tuple"):
        items = [_read(item) for item in of]
        return set(items) if kind == "set" else tuple(items)
    return Stored(kind, {name: _read(value) for name, value in of.items()})


def _differing(expected: Any, made: Any, path: str) -> Iterator[str]:
    """The places that differ, as deep inside as they can be told."""
    if expected == made:
        return
    if isinstance(expected, Stored) and isinstance(made, Stored) and expected.kind == made.kind:
        yield from _differing(expected.fields, made.fields, path)
    elif isinstance(expected, Mapping) and isinstance(made, Mapping):
        for key in (*expected, *(key for key in made if key not in expected)):
            if key not in made:
                yield f"{path}.{key} is missing"
            elif key not in expected:
                yield f"{path}.{key} should not be there"
            else:
                yield from _differing(expected[key], made[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(made, list) and len(expected) == len(made):
        for place, (one, other) in enumerate(zip(expected, made, strict=True)):
            yield from _differing(one, other, f"{path}[{place}]")
    else:
        yield f"{path} is {_said(made)} instead of {_said(expected)}"


def _said(value: Any) -> str:
    return shown(json.loads(json.dumps(value, default=_plain)))


def _plain(value: Any) -> Any:
    return value.fields if isinstance(value, Stored) else list(value)
