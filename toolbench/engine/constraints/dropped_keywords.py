"""Keywords of a schema that a constraint does not enforce."""

from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange

MAX_SHOWN_CHARACTERS = 80  # characters of a keyword's value


@dataclass(frozen=True, slots=True)
class DroppedKeyword:
    """A keyword that is not sent, or only in a weaker form. Answers are still validated by the tool's own schema.

    Attributes:
        path: JSON path into the tools (`$[0].parameters.properties.a.pattern`).
        dialect: the constraint that does not enforce it.
        kept: what is sent instead; "" for nothing.
    """

    path: str
    keyword: str
    dialect: str
    value: str = ""
    kept: str = ""

    def as_change(self) -> TransformChange:
        """Return the dropped keyword as a change in the trace."""
        name = f"constraint_{self.dialect}"
        return TransformChange("tool", name, self.path, f"{self.keyword}: {self.value}", self.kept or "not held")


def render_value_start(value: Any) -> str:
    """Return the beginning of a value as JSON."""
    text = write_json(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 1]}…"
