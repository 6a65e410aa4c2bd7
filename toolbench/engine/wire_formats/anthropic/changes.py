"""Changes that a wire format makes to a request beyond the conversion of its format."""

from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange
from toolbench.engine.wire_formats.parse_answer import truncate_snippet


class WireChanges:
    """List of the changes to one request, of kind `wire`, in the order in which they are recorded."""

    def __init__(self) -> None:
        self._changes: list[TransformChange] = []

    def record(self, name: str, path: str, value_before: Any, value_after: Any = None) -> None:
        """Record a change.

        Args:
            name: name of the change, such as `option_left_out`.
            path: JSON path of the changed value.
            value_before: the value in chat format; None if there was none.
            value_after: the value that is sent; None if there is none.
        """
        self._changes.append(
            TransformChange("wire", name, path, _render_snippet(value_before), _render_snippet(value_after))
        )

    def list_changes(self) -> tuple[TransformChange, ...]:
        """Return all changes."""
        return tuple(self._changes)


def _render_snippet(value: Any) -> str:
    return "" if value is None else truncate_snippet(write_json(value))
