"""References inside one schema. Nothing is fetched."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from toolbench.engine.errors import PlanError

VALUE_KEYWORDS = ("enum", "const", "default", "examples", "example")  # what stands there is data, not schema


class SchemaReferences:
    """The references of one tool's schema: their targets, and which are recursive."""

    def __init__(self, root: Mapping[str, Any], tool: str) -> None:
        self._root = root
        self._tool = tool
        self._leads: dict[str, frozenset[str]] = {}
        self._recursive: dict[str, bool] = {}

    def target(self, pointer: str) -> Any:
        """Return what a local pointer names; None for a reference by anchor.

        Raises:
            PlanError: the pointer leads outside of the schema or to nothing.
        """
        if not pointer.startswith("#"):
            raise PlanError(f"tool {self._tool}: {pointer!r} leads outside its schema; nothing is fetched")
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        found: Any = self._root
        for part in pointer[2:].split("/") if len(pointer) > 1 else ():
            found = self._step(found, unquote(part).replace("~1", "/").replace("~0", "~"), pointer)
        return found

    def is_recursive(self, pointer: str) -> bool:
        """Return whether the target contains the same reference again, directly or indirectly."""
        if pointer not in self._recursive:
            self._recursive[pointer] = pointer in self._reached(pointer)
        return self._recursive[pointer]

    def _reached(self, pointer: str) -> set[str]:
        reached: set[str] = set()
        waiting = [pointer]
        while waiting:
            for found in self._from(waiting.pop()) - reached:
                reached.add(found)
                waiting.append(found)
        return reached

    def _step(self, found: Any, part: str, pointer: str) -> Any:
        if isinstance(found, dict) and part in found:
            return found[part]
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            return found[int(part)]
        raise PlanError(f"tool {self._tool}: its schema has nothing at {pointer!r}")

    def _from(self, pointer: str) -> frozenset[str]:
        if pointer not in self._leads:
            self._leads[pointer] = frozenset(_iterate_references(self.target(pointer)))
        return self._leads[pointer]


def _iterate_references(part: Any) -> Iterator[str]:
    waiting = [part]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if isinstance(found.get("$ref"), str):
                yield found["$ref"]
            waiting += [value for name, value in found.items() if name not in VALUE_KEYWORDS]
        elif isinstance(found, list):
            waiting += found
