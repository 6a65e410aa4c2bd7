"""What a dialect does not hold, told keyword by keyword."""

from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange

MAX_SHOWN_CHARACTERS = 80  # characters of a keyword's value


@dataclass(frozen=True, slots=True)
class DroppedKeyword:
    """A keyword that is not sent, or only in a weaker form: `path` is a JSON path into the tools
    (`$[0].parameters.properties.a.pattern`), `dialect` who would not hold it, `kept` what stands for it, "" for
    nothing. Answers are still checked against the tool's own schema."""

    path: str
    keyword: str
    dialect: str
    value: str = ""
    kept: str = ""

    def as_change(self) -> TransformChange:
        """The same as a step of the trace shows it."""
        name = f"constraint_{self.dialect}"
        return TransformChange("tool", name, self.path, f"{self.keyword}: {self.value}", self.kept or "not held")


def render_value_start(value: Any) -> str:
    """The beginning of a value as JSON."""
    text = write_json(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 1]}…"
