"""Patch operations on a JSON document, addressed by JSON Pointers: all of them are applied, or none."""

import copy
from collections.abc import Sequence
from typing import Any

from jsonpointer import JsonPointer, JsonPointerException

from toolbench.engine.json_paths import find_list_index
from toolbench.engine.types import JsonObject

OPERATIONS = ("set", "delete", "append", "insert")


class PatchError(ValueError):
    """An operation that cannot be applied; the message is addressed to the model."""


def apply_patch(document: JsonObject, operations: Sequence[JsonObject], *, root: str) -> JsonObject:
    """Return a new document with the operations applied in order; `document` is not changed.

    Every operation but `delete` creates missing parents as objects. If `path` leads to a member of an object that is
    missing or null, `append` and `insert` set it to an array of one item, whatever `index` is.

    Args:
        document: The document.
        operations: Objects with `op` (one of OPERATIONS), `path` (a JSON Pointer), `value` (except for `delete`) and
            `index` (for `insert`, from 0).
        root: The prefix of every permitted path, for instance `/draft/`.

    Raises:
        PatchError: An operation cannot be applied.
    """
    changed = copy.deepcopy(document)
    for operation in operations:
        _apply_operation(changed, operation, root)
    return changed


def parse_pointer(path: str) -> list[str]:
    """Return the unescaped parts of a JSON Pointer.

    Raises:
        PatchError: The path is not a JSON Pointer.
    """
    try:
        return list(JsonPointer(path).parts)
    except JsonPointerException as error:
        raise PatchError(f"{path} is not a JSON Pointer: {error}") from error


def _apply_operation(document: JsonObject, operation: JsonObject, root: str) -> None:
    name, path = operation.get("op"), operation.get("path")
    if name not in OPERATIONS:
        raise PatchError(f"op must be one of {', '.join(OPERATIONS)}")
    if not isinstance(path, str) or not path.startswith(root) or path == root:
        raise PatchError(f"path must start with {root}")
    *parents, last = parse_pointer(path)
    container = _find_container(document, parents, create_missing=name != "delete")
    if name == "set":
        _set_value(container, last, copy.deepcopy(operation.get("value")))
    elif name == "delete":
        _delete_value(container, last)
    else:
        _add_value(container, last, operation)


def _find_container(document: Any, parts: Sequence[str], *, create_missing: bool) -> Any:
    container = document
    for part in parts:
        if isinstance(container, dict) and part not in container and create_missing:
            container[part] = {}
        container = _get_child(container, part)
    return container


def _get_child(container: Any, part: str) -> Any:
    if isinstance(container, dict):
        if part not in container:
            raise PatchError(f"nothing is at {part}")
        return container[part]
    return container[parse_index(container, part)]


def parse_index(container: Any, part: str) -> int:
    """Return the list index that a part of a JSON Pointer gives, such as 3 for `3`.

    Raises:
        PatchError: The container is not a list, or has no such index.
    """
    if not isinstance(container, list):
        raise PatchError(f"{part} lies inside a value that is neither object nor array")
    if (index := find_list_index(container, part)) is None:
        raise PatchError(f"{part} is no index of an array of {len(container)}")
    return index


def _set_value(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container[parse_index(container, key)] = value


def _delete_value(container: Any, key: str) -> None:
    _get_child(container, key)
    del container[key if isinstance(container, dict) else parse_index(container, key)]


def _add_value(container: Any, key: str, operation: JsonObject) -> None:
    value = copy.deepcopy(operation.get("value"))
    if isinstance(container, dict) and container.get(key) is None:
        container[key] = [value]
        return
    items = _get_child(container, key)
    if not isinstance(items, list):
        raise PatchError(f"{operation['path']} is not an array")
    if operation["op"] == "append":
        items.append(value)
        return
    index = operation.get("index")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= len(items):
        raise PatchError(f"index must be an integer from 0 to {len(items)}")
    items.insert(index, value)
