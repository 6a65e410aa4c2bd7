"""The calls that every text format finds in one text, for the format viewer."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine import formats
from toolbench.engine.partial_json import read_partial
from toolbench.engine.types import Finding, JsonObject

CUT_CALL_CODE = "call_cut"
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
MAX_TEXT_CHARS = 8_000  # every text format parses the whole text


@dataclass(frozen=True, slots=True)
class CallView:
    """One call found in a text.

    Attributes:
        arguments: the arguments as indented JSON.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RemainingText:
    """The text outside of calls, which is the same for all `formats`."""

    formats: tuple[str, ...]
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class FormatReading:
    """The result of parsing a text, which is the same for several formats.

    Attributes:
        calls: the calls found.
        partial_call: if the text ends within a call that is written as JSON, the JSON so far; else "".
        rests: the text outside of calls, which may differ between the formats.
    """

    calls: tuple[CallView, ...]
    findings: tuple[Finding, ...]
    partial_call: str
    rests: tuple[RemainingText, ...]

    @property
    def formats(self) -> tuple[str, ...]:
        """The names of the formats with this result."""
        return tuple(name for rest in self.rests for name in rest.formats)

    @property
    def has_result(self) -> bool:
        """Whether the formats found anything but plain text."""
        return bool(self.calls or self.findings or any(rest.reasoning for rest in self.rests))


@dataclass(frozen=True, slots=True)
class FormatReadings:
    """The results of all text formats for one text.

    Attributes:
        auto: the result of automatic detection by start markers and names of known tools.
        others: the results of formats that found something, those with calls first.
        formats_without_result: the names of the other formats.
    """

    auto: FormatReading
    others: tuple[FormatReading, ...]
    formats_without_result: tuple[str, ...]


def parse_with_every_format(text: str, tools: Sequence[JsonObject] = ()) -> FormatReadings:
    """Parse a text with every text format. No text raises an exception.

    `tools` are in OpenAI's format. Bare JSON and Python calls are parsed only for the names of these tools.
    """
    alone = [_parse_with_format(name, text, tools) for name in formats.list_format_names() if name != formats.AUTO]
    alike: dict[FormatReading, list[RemainingText]] = {}
    for reading in alone:
        alike.setdefault(replace(reading, rests=()), []).extend(reading.rests)
    readings = [replace(reading, rests=_merge_remaining(rests)) for reading, rests in alike.items()]
    return FormatReadings(
        auto=_parse_with_format(formats.AUTO, text, tools),
        others=tuple(
            sorted(
                (reading for reading in readings if reading.has_result),
                key=lambda reading: (not reading.calls, reading.formats),
            )
        ),
        formats_without_result=tuple(
            name for reading in readings if not reading.has_result for name in reading.formats
        ),
    )


def _merge_remaining(rests: Sequence[RemainingText]) -> tuple[RemainingText, ...]:
    alike: dict[RemainingText, list[str]] = {}
    for rest in rests:
        alike.setdefault(replace(rest, formats=()), []).extend(rest.formats)
    return tuple(replace(rest, formats=tuple(names)) for rest, names in alike.items())


def find_example(format: str) -> str | None:
    """Return the example call in a text format; None for an unknown format."""
    known = format in formats.list_format_names() and format != formats.AUTO
    return formats.render([EXAMPLE_CALL], format=format) if known else None


def _parse_with_format(name: str, text: str, tools: Sequence[JsonObject]) -> FormatReading:
    decoder = formats.stream(name, tools)
    decoder.feed(text)
    begun = decoder.partial
    parsed = decoder.close()
    is_cut = any(finding.code == CUT_CALL_CODE for finding in parsed.findings)
    return FormatReading(
        calls=tuple(CallView(call.id, call.name, _render_json(call.arguments)) for call in parsed.calls),
        findings=parsed.findings,
        partial_call=_render_partial_call(begun) if is_cut else "",
        rests=(RemainingText((name,), parsed.text, parsed.reasoning),),
    )


def _render_partial_call(begun: str) -> str:
    """Return the unfinished call as JSON; "" if it is not written as JSON."""
    bracket = re.search(r"[{[]", begun)
    value = read_partial(begun[bracket.start() :]) if bracket else None
    return "" if value is None else _render_json(value)


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
