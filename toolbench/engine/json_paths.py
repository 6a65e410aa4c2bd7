"""Rendering of JSON paths, which locate a value inside another JSON value."""

import re
from collections.abc import Sequence

from toolbench.engine.strict_json import write_json

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render_json_path(keys_and_indexes: Sequence[str | int]) -> str:
    """Render `["ops", 0, "path"]` as `$.ops[0].path`.

    A name that is not a plain word is written in brackets and quotes.
    """
    path = "$"
    for key_or_index in keys_and_indexes:
        path = f"{path}[{key_or_index}]" if isinstance(key_or_index, int) else build_member_path(path, key_or_index)
    return path


def build_member_path(path: str, name: str) -> str:
    """Return the path of the member `name` of the object at `path`."""
    return f"{path}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{path}[{write_json(name)}]"
