"""Where in a value something stands, as a JSON path."""

import re
from collections.abc import Sequence

from toolbench.engine.strict_json import write_json

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render_json_path(parts: Sequence[str | int]) -> str:
    """`["ops", 0, "path"]` -> `$.ops[0].path`; a name that is no plain word stands in quotes and brackets."""
    path = "$"
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else build_member_path(path, part)
    return path


def build_member_path(path: str, name: str) -> str:
    """The path of an object's member."""
    return f"{path}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{path}[{write_json(name)}]"
