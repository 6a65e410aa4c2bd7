"""Values that nobody expects where a number belongs, and every place in a valid example where one does."""

import json
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

# As they are written in JSON; some of them are none.
EXTREMES = (
    "0", "-1", "0.5", "1e9", "1000000001", "2147483648", "9223372036854775808", "1" + "0" * 30, "1e308", "-1e308",
    "1e400", "NaN", "Infinity", "-Infinity", "9" * 5000, "true", '"many"', '"7"', "null", "[]", "[1]", "{}",
)  # fmt: skip
_HERE = '"@here@"'


def number_leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where the numbers of a JSON value stand; the first of a list stands for all of them."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from number_leaves(part, (*path, key))
    elif isinstance(value, list):
        if value:
            yield from number_leaves(value[0], (*path, 0))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def with_literal(value: Any, path: Path, literal: str) -> str:
    """Return the JSON text of `value` with `literal` at `path`, whether JSON has it or not."""
    return json.dumps(_replaced(value, path, json.loads(_HERE))).replace(_HERE, literal)


def _replaced(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy
