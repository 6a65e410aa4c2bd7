"""References inside one schema. References to other documents are refused, not fetched."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from toolbench.engine.errors import PlanError

VALUE_KEYWORDS = ("enum", "const", "default", "examples", "example")  # their values are data, not schemas


class SchemaReferences:
    """The references in the schema of one tool."""

    def __init__(self, root: Mapping[str, Any], tool: str) -> None:
        self._root = root
        self._tool = tool
        self._pointers_by_source: dict[str, frozenset[str]] = {}
        self._recursive: dict[str, bool] = {}

    def find_target(self, pointer: str) -> Any:
        """Return the part of the schema that a local pointer names; None for a reference by anchor.

        Raises:
            PlanError: the pointer refers to another document or to a missing part.
        """
        if not pointer.startswith("#"):
            raise PlanError(f"tool {self._tool}: {pointer!r} leads outside its schema; nothing is fetched")
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        part: Any = self._root
        for key in pointer[2:].split("/") if len(pointer) > 1 else ():
            part = self._follow(part, unquote(key).replace("~1", "/").replace("~0", "~"), pointer)
        return part

    def is_recursive(self, pointer: str) -> bool:
        """Return whether the target contains the same reference again, directly or indirectly."""
        if pointer not in self._recursive:
            self._recursive[pointer] = pointer in self._find_reachable(pointer)
        return self._recursive[pointer]

    def _find_reachable(self, pointer: str) -> set[str]:
        reached: set[str] = set()
        waiting = [pointer]
        while waiting:
            for next_pointer in self._get_pointers_in(waiting.pop()) - reached:
                reached.add(next_pointer)
                waiting.append(next_pointer)
        return reached

    def _follow(self, parent: Any, key: str, pointer: str) -> Any:
        if isinstance(parent, dict) and key in parent:
            return parent[key]
        if isinstance(parent, list) and key.isdigit() and int(key) < len(parent):
            return parent[int(key)]
        raise PlanError(f"tool {self._tool}: its schema has nothing at {pointer!r}")

    def _get_pointers_in(self, pointer: str) -> frozenset[str]:
        if pointer not in self._pointers_by_source:
            self._pointers_by_source[pointer] = frozenset(_iterate_references(self.find_target(pointer)))
        return self._pointers_by_source[pointer]


def _iterate_references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            if isinstance(current.get("$ref"), str):
                yield current["$ref"]
            waiting += [value for name, value in current.items() if name not in VALUE_KEYWORDS]
        elif isinstance(current, list):
            waiting += current
