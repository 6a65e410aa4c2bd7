"""Data of the format viewer: the calls that each text format finds in a text."""

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
    """The text outside of calls.

    Attributes:
        formats: names of the formats with the same text and reasoning.
    """

    formats: tuple[str, ...]
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class FormatReading:
    """The result of parsing a text, shared by all formats that give the same result.

    Attributes:
        calls: the calls in the text, in order.
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
        """Whether the result has more than plain text."""
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
    """Parse a text with every text format. Every text can be parsed; invalid calls are findings.

    Args:
        text: the text.
        tools: tool definitions in OpenAI's format. Bare JSON and Python calls are read only for these tools.
    """
    single = [_parse_with_format(name, text, tools) for name in formats.list_format_names() if name != formats.AUTO]
    grouped: dict[FormatReading, list[RemainingText]] = {}
    for reading in single:
        grouped.setdefault(replace(reading, rests=()), []).extend(reading.rests)
    readings = [replace(reading, rests=_merge_remaining(rests)) for reading, rests in grouped.items()]
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
    names: dict[RemainingText, list[str]] = {}
    for rest in rests:
        names.setdefault(replace(rest, formats=()), []).extend(rest.formats)
    return tuple(replace(rest, formats=tuple(format_names)) for rest, format_names in names.items())


def find_example(format_name: str) -> str | None:
    """Return the example call in a text format; None for an unknown format."""
    is_known = format_name in formats.list_format_names() and format_name != formats.AUTO
    return formats.render([EXAMPLE_CALL], format=format_name) if is_known else None


def _parse_with_format(name: str, text: str, tools: Sequence[JsonObject]) -> FormatReading:
    decoder = formats.stream(name, tools)
    decoder.feed(text)
    partial_text = decoder.partial
    parsed = decoder.close()
    is_cut = any(finding.code == CUT_CALL_CODE for finding in parsed.findings)
    return FormatReading(
        calls=tuple(CallView(call.id, call.name, _render_json(call.arguments)) for call in parsed.calls),
        findings=parsed.findings,
        partial_call=_render_partial_call(partial_text) if is_cut else "",
        rests=(RemainingText((name,), parsed.text, parsed.reasoning),),
    )


def _render_partial_call(partial_text: str) -> str:
    """Return the unfinished call as JSON; "" if it is not written as JSON."""
    bracket = re.search(r"[{[]", partial_text)
    value = read_partial(partial_text[bracket.start() :]) if bracket else None
    return "" if value is None else _render_json(value)


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
