"""Golden texts with what the formats read in them, and parsing in chunks."""

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
    """A text and what a format reads in it.

    Attributes:
        format: the name of the text format.
        description: what the text is.
        calls: name and arguments of each call, and the id if the text has one.
        remaining_text: what is left as text.
        findings: the codes of the findings.
    """

    format: str
    description: str
    text: str
    calls: list[list[Any]]
    remaining_text: str
    reasoning: str
    findings: list[str]

    def __str__(self) -> str:
        return f"{self.format}: {self.description}"


def read_golden_cases() -> list[GoldenCase]:
    """Return all rows of the files golden*.json."""
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
    """Parse the text in chunks of one size, or of random sizes.

    Args:
        sizes: the size of every chunk, or a generator of random sizes.
    """
    decoder = stream(format, tools)
    start = 0
    while start < len(text):
        size = sizes if isinstance(sizes, int) else sizes.choice((1, 1, 2, 3, 5, 8, 13, 40))
        decoder.feed(text[start : start + size])
        start += size
    return decoder.close()


def list_markers() -> list[str]:
    """Return every marker of any format."""
    markers: set[str] = set()
    for text_format in FORMATS:
        markers |= {*text_format.dropped_tokens, *(word for pair in text_format.reasoning_markers for word in pair)}
        for block in (
            *text_format.blocks,
            *text_format.build_named_blocks(["ping"]),
            *text_format.build_bare_blocks(["ping"]),
        ):
            markers |= {
                block.start_marker,
                *block.end_markers,
                *block.next_markers,
                *block.body_starts,
                *(block.value_markers or ()),
            }
    return sorted(markers)
