"""What had to be changed for Messages beyond the format."""

from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange
from toolbench.engine.wire_formats.parse_answer import truncate_snippet


class WireChanges:
    """Collects changes of kind `wire` in order."""

    def __init__(self) -> None:
        self._made: list[TransformChange] = []

    def note(self, name: str, path: str, before: Any, after: Any = None) -> None:
        """Record a change. None on a side means that there was no value."""
        self._made.append(TransformChange("wire", name, path, _short(before), _short(after)))

    def all(self) -> tuple[TransformChange, ...]:
        """Return all changes."""
        return tuple(self._made)


def _short(value: Any) -> str:
    return "" if value is None else truncate_snippet(write_json(value))
