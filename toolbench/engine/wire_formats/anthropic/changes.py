"""Changes to a request for Messages beyond the conversion of its format."""

from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange
from toolbench.engine.wire_formats.parse_answer import truncate_snippet


class WireChanges:
    """Ordered list of changes of kind `wire`."""

    def __init__(self) -> None:
        self._changes: list[TransformChange] = []

    def record(self, name: str, path: str, value_before: Any, value_after: Any = None) -> None:
        """Record a change; `value_before` and `value_after` are None where there is no value."""
        self._changes.append(
            TransformChange("wire", name, path, _render_snippet(value_before), _render_snippet(value_after))
        )

    def list_changes(self) -> tuple[TransformChange, ...]:
        """Return all changes."""
        return tuple(self._changes)


def _render_snippet(value: Any) -> str:
    return "" if value is None else truncate_snippet(write_json(value))
