"""Reading of the JSON tables in `toolbench/evals/data/`."""

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_table(name: str) -> Any:
    """Return the JSON value of `data/<name>.json`. All callers share one value: treat it as read-only."""
    return json.loads(resources.files("toolbench.evals").joinpath("data", f"{name}.json").read_text(encoding="utf-8"))


def freeze_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the row with tuples in place of its lists; lists inside its values stay lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
