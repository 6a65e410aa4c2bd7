"""The golden texts, and how a text is fed in pieces."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolbench.engine.formats import ParsedText, stream
from toolbench.engine.formats.registry import FORMATS

DATA_FOLDER = Path(__file__).parent / "data"
TOOLS: list[dict[str, Any]] = json.loads((DATA_FOLDER / "tools.json").read_text())
WEATHER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True)
class GoldenCase:
    """One text and what a format reads in it; `said` is what is left as text."""

    format: str
    it: str
    text: str
    calls: list[list[Any]]  # name, arguments, and the id where the text has one
    said: str
    reasoning: str
    findings: list[str]

    def __str__(self) -> str:
        return f"{self.format}: {self.it}"


def read_golden_cases() -> list[GoldenCase]:
    """All rows of the files that are named golden*.json."""
    return [
        GoldenCase(
            name,
            row["it"],
            row["text"],
            row.get("calls", []),
            row.get("says", ""),
            row.get("reasoning", ""),
            row.get("findings", []),
        )
        for path in sorted(DATA_FOLDER.glob("golden*.json"))
        for name, rows in json.loads(path.read_text()).items()
        for row in rows
    ]


def parse_in_chunks(text: str, format: str, sizes: random.Random | int, tools: Any = TOOLS) -> ParsedText:
    """The text fed in pieces of one size, or of sizes drawn from `sizes`."""
    decoder = stream(format, tools)
    at = 0
    while at < len(text):
        size = sizes if isinstance(sizes, int) else sizes.choice((1, 1, 2, 3, 5, 8, 13, 40))
        decoder.feed(text[at : at + size])
        at += size
    return decoder.close()


def list_markers() -> list[str]:
    """Every word that any format looks for."""
    found: set[str] = set()
    for form in FORMATS:
        found |= {*form.dropped_tokens, *(word for pair in form.reasoning_markers for word in pair)}
        for block in (*form.blocks, *form.build_named_blocks(["ping"]), *form.build_bare_blocks(["ping"])):
            found |= {
                block.start_marker,
                *block.end_markers,
                *block.next_markers,
                *block.body_starts,
                *(block.value_markers or ()),
            }
    return sorted(found)
