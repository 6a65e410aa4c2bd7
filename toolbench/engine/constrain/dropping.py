"""What a dialect does not hold, told keyword by keyword."""

from dataclasses import dataclass
from typing import Any

from toolbench.engine.json_text import write_json
from toolbench.engine.messages import TransformChange

SHOWN = 80  # characters of a keyword's value


@dataclass(frozen=True, slots=True)
class Dropped:
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


def shown(value: Any) -> str:
    """The beginning of a value as JSON."""
    text = write_json(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
