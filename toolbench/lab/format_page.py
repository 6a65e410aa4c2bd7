"""What every dialect of tool calls reads in one text, as the format viewer shows it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine import formats
from toolbench.engine.messages import Finding, JsonObject
from toolbench.engine.partial_json import read_partial

CUT = "call_cut"
EXAMPLE_CALL = formats.TextCall("get_weather", {"city": "Oslo"}, id="call_1")
EXAMPLE_TOOLS: tuple[JsonObject, ...] = (
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    },
)
MOST_TEXT = 8_000  # characters; every one is read by some sixty formats


@dataclass(frozen=True, slots=True)
class ReadCall:
    id: str
    name: str
    arguments: str  # as JSON


@dataclass(frozen=True, slots=True)
class Reading:
    """What `formats` made of the text, all of them the same. `saw` is false where they took it for plain text. `so_far`
    is what the JSON of a call that the text breaks off in already says."""

    formats: tuple[str, ...]
    calls: tuple[ReadCall, ...]
    text: str
    reasoning: str
    findings: tuple[Finding, ...]
    so_far: str = ""

    @property
    def saw(self) -> bool:
        return bool(self.calls or self.findings or self.reasoning)


@dataclass(frozen=True, slots=True)
class Readings:
    """`auto` picks by opener and known tool names; `others` are the formats that saw something, those with calls first;
    `blind` are the names of the rest."""

    auto: Reading
    others: tuple[Reading, ...]
    blind: tuple[str, ...]


def read_with_every_format(text: str, tools: Sequence[JsonObject] = ()) -> Readings:
    """`tools` are in OpenAI's shape; bare JSON and Python calls are only read for known names. Never raises."""
    readings = [_reading(name, text, tools) for name in formats.names() if name != formats.AUTO]
    alike: dict[Reading, list[str]] = {}
    for one in readings:
        alike.setdefault(replace(one, formats=()), []).extend(one.formats)
    saw = [replace(one, formats=tuple(names)) for one, names in alike.items() if one.saw]
    return Readings(
        auto=_reading(formats.AUTO, text, tools),
        others=tuple(sorted(saw, key=lambda one: (not one.calls, one.formats))),
        blind=tuple(name for one, names in alike.items() if not one.saw for name in names),
    )


def example_of(format: str) -> str | None:
    """How the format writes a call of the example's tool; None for a format that nobody knows."""
    known = format in formats.names() and format != formats.AUTO
    return formats.render([EXAMPLE_CALL], format=format) if known else None


def _reading(name: str, text: str, tools: Sequence[JsonObject]) -> Reading:
    decoder = formats.stream(name, tools)
    decoder.feed(text)
    begun = decoder.partial
    parsed = decoder.close()
    is_cut = any(finding.code == CUT for finding in parsed.findings)
    return Reading(
        formats=(name,),
        calls=tuple(ReadCall(call.id, call.name, _json(call.arguments)) for call in parsed.calls),
        text=parsed.text,
        reasoning=parsed.reasoning,
        findings=parsed.findings,
        so_far=_so_far(begun) if is_cut else "",
    )


def _so_far(begun: str) -> str:
    """What the beginning of a call says, where it is written as JSON; else nothing."""
    bracket = re.search(r"[{[]", begun)
    value = read_partial(begun[bracket.start() :]) if bracket else None
    return "" if value is None else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
