"""References inside one schema. References to other documents are refused, not fetched."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.json_paths import follow_reference
from toolbench.engine.tools.typed_schemas import SCHEMAS_BY_NAME, VALUE_KEYWORDS


class SchemaReferences:
    """The references in the schema of one tool."""

    def __init__(self, root: Mapping[str, Any], tool_name: str) -> None:
        self._root = root
        self._tool_name = tool_name
        self._pointers_by_source: dict[str, frozenset[str]] = {}
        self._is_recursive_by_pointer: dict[str, bool] = {}

    def find_target(self, pointer: str) -> Any:
        """Return the part of the schema to which a local pointer refers; None for an anchor (`#name`).

        Raises:
            PlanError: the pointer refers to another document or to a missing part.
        """
        if not pointer.startswith("#"):
            raise PlanError(f"tool {self._tool_name}: {pointer!r} refers to another document, which is not fetched")
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        try:
            return follow_reference(self._root, pointer)
        except KeyError:
            raise PlanError(f"tool {self._tool_name}: its schema has nothing at {pointer!r}") from None

    def is_recursive(self, pointer: str) -> bool:
        """Return whether the target of a pointer refers to the same pointer again, directly or indirectly.

        Raises:
            PlanError: the pointer, or a reference in its target, refers to another document or to a missing part.
        """
        if pointer not in self._is_recursive_by_pointer:
            self._is_recursive_by_pointer[pointer] = pointer in self._find_reachable_pointers(pointer)
        return self._is_recursive_by_pointer[pointer]

    def _find_reachable_pointers(self, pointer: str) -> set[str]:
        """Return the pointers of all references in the target of a pointer, and in their targets."""
        reached_pointers: set[str] = set()
        pending_pointers = [pointer]
        while pending_pointers:
            for next_pointer in self._find_pointers_in(pending_pointers.pop()) - reached_pointers:
                reached_pointers.add(next_pointer)
                pending_pointers.append(next_pointer)
        return reached_pointers

    def _find_pointers_in(self, pointer: str) -> frozenset[str]:
        if pointer not in self._pointers_by_source:
            self._pointers_by_source[pointer] = frozenset(_iterate_references(self.find_target(pointer)))
        return self._pointers_by_source[pointer]


def _iterate_references(schema: Any) -> Iterator[str]:
    pending_values = [(schema, False)]  # a value, and whether its keys are names instead of keywords
    while pending_values:
        inner_value, has_names = pending_values.pop()
        if isinstance(inner_value, dict):
            if isinstance(inner_value.get("$ref"), str):
                yield inner_value["$ref"]
            pending_values += [
                (value, key in SCHEMAS_BY_NAME and not has_names)
                for key, value in inner_value.items()
                if has_names or key not in VALUE_KEYWORDS
            ]
        elif isinstance(inner_value, list):
            pending_values += [(item, False) for item in inner_value]
