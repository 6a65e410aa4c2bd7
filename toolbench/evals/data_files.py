"""The evals' tables of facts, read from `data/`."""

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_table(name: str) -> Any:
    """The JSON value of `data/<name>.json`. One value is shared by all readers: treat it as read-only."""
    return json.loads(resources.files("toolbench.evals").joinpath("data", f"{name}.json").read_text(encoding="utf-8"))


def freeze_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its lists as tuples, ready for a dataclass."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
