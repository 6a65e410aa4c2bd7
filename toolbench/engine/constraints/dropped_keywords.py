"""Keywords of a schema that a constraint does not enforce."""

from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import TransformChange

MAX_SHOWN_CHARACTERS = 80  # characters of a keyword's value that are kept, including the ellipsis
ANY_SCALAR = "any text, number, boolean or null"  # a replacement, where a schema is nested too deeply


@dataclass(frozen=True, slots=True)
class DroppedKeyword:
    """A keyword of a tool's schema that a constraint does not enforce, or only in a weaker form.

    Answers are still validated by the tool's own schema.

    Attributes:
        path: JSON path into the tools (`$[0].parameters.properties.a.pattern`).
        keyword: name of the keyword; "depth" for a schema that nests too deeply, "strict" for a tool that is
            sent without `strict`.
        constraint: `SchemaSupport.name` of the constraint that does not enforce the keyword; several constraints may
            share it.
        value: the keyword's value as JSON, truncated to 80 characters; the limit for "depth", the schema's keys for
            "strict".
        replacement: a description of what is enforced instead; "" for nothing.
    """

    path: str
    keyword: str
    constraint: str
    value: str = ""
    replacement: str = ""

    def build_change(self) -> TransformChange:
        """Return the dropped keyword as a change of the tools."""
        name = f"constraint_{self.constraint}"
        after = self.replacement or "not enforced"
        return TransformChange("tool", name, self.path, f"{self.keyword}: {self.value}", after)


def render_value_start(value: Any) -> str:
    """Return a value as JSON, truncated to 80 characters."""
    text = write_json(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 1]}…"
