"""JSON paths and JSON Pointers, which locate a value inside another JSON value.

Findings, changes and schema errors contain JSON paths; references in schemas contain JSON Pointers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from toolbench.engine.strict_json import write_json

_INDEX = re.compile("[0-9]{1,9}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render_json_path(keys_and_indexes: Sequence[str | int]) -> str:
    """Render `["ops", 0, "path"]` as `$.ops[0].path`.

    A key that is not a plain word is written in brackets and quotes: `$["a b"]`.
    """
    path = "$"
    for key_or_index in keys_and_indexes:
        path = f"{path}[{key_or_index}]" if isinstance(key_or_index, int) else build_member_path(path, key_or_index)
    return path


def build_member_path(path: str, name: str) -> str:
    """Return the path of the member `name` of the object at `path`."""
    return f"{path}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{path}[{write_json(name)}]"


def find_list_index(items: Sequence[object], part: str) -> int | None:
    """Return the list index that a part of a JSON Pointer names, or None if the list has no such index."""
    index = int(part) if _INDEX.fullmatch(part) else len(items)
    return index if index < len(items) else None


def follow_reference(root: Any, reference: str) -> Any:
    """Return the part of a document to which a reference by JSON Pointer refers.

    Args:
        root: the document.
        reference: `#` and a JSON Pointer, such as `#/$defs/name`; `#` alone for the whole document.

    Raises:
        KeyError: the document has no such part.
    """
    value = root
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and (index := find_list_index(value, key)) is not None:
            value = value[index]
        else:
            raise KeyError(reference)
    return value
