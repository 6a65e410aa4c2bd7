"""Extreme values in place of numbers, and the paths of the numbers in a valid example."""

import json
from collections.abc import Iterator
from typing import Any

JsonPath = tuple[str | int, ...]

# JSON literals; some of them are no JSON numbers.
EXTREME_NUMBERS = (
    "0", "-1", "0.5", "1e9", "1000000001", "2147483648", "9223372036854775808", "1" + "0" * 30, "1e308", "-1e308",
    "1e400", "NaN", "Infinity", "-Infinity", "9" * 5000, "true", '"many"', '"7"', "null", "[]", "[1]", "{}",
)  # fmt: skip
_PLACEHOLDER = '"@here@"'


def iter_number_paths(value: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Yield the paths of the numbers in a JSON value; of a list only those in its first element."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from iter_number_paths(part, (*path, key))
    elif isinstance(value, list):
        if value:
            yield from iter_number_paths(value[0], (*path, 0))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def render_with_literal(value: Any, path: JsonPath, literal: str) -> str:
    """Return the JSON text of `value` with `literal` at `path`, even if the result is no valid JSON."""
    return json.dumps(_replace_at(value, path, json.loads(_PLACEHOLDER))).replace(_PLACEHOLDER, literal)


def _replace_at(value: Any, path: JsonPath, new: Any) -> Any:
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replace_at(value[path[0]], path[1:], new)
    return copy
