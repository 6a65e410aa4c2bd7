"""Results of the format viewer: the calls that each text format reads in a text."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine import formats
from toolbench.engine.partial_json import read_partial
from toolbench.engine.types import Finding, JsonObject

TRUNCATED_CALL_CODE = "call_cut"  # code of the finding for a call that the end of the text interrupts
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
MAX_TEXT_CHARS = 8_000  # a longer text takes too long, since every text format parses all of it


@dataclass(frozen=True, slots=True)
class CallView:
    """A call in a text.

    Attributes:
        id: the id in the text, or "call_1", "call_2" and so on by position.
        arguments: the arguments as indented JSON.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RemainingText:
    """The text outside of calls, as one or more formats read it.

    Attributes:
        formats: names of the formats that read this text and this reasoning.
        text: the answer without calls and reasoning.
        reasoning: the model's reasoning; "" for none.
    """

    formats: tuple[str, ...]
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class FormatReading:
    """The calls that one or more formats read in a text.

    Attributes:
        calls: the calls in the text, in order.
        partial_call: the JSON of a call that the end of the text interrupts, as valid JSON; "" without such a call or
            without JSON in it.
        remaining_texts: each different text outside of calls, with its formats.
    """

    calls: tuple[CallView, ...]
    findings: tuple[Finding, ...]
    partial_call: str
    remaining_texts: tuple[RemainingText, ...]

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of the formats that read the text in this way."""
        return tuple(name for remaining in self.remaining_texts for name in remaining.formats)

    @property
    def has_result(self) -> bool:
        """Whether the formats found a call, a problem or reasoning in the text."""
        has_reasoning = any(remaining.reasoning for remaining in self.remaining_texts)
        return bool(self.calls or self.findings or has_reasoning)


@dataclass(frozen=True, slots=True)
class FormatReadings:
    """The results of all text formats for one text.

    Attributes:
        auto: the result of the format `auto`, which detects formats by start markers and by names of the tools.
        others: the results of all formats but `auto` for which `has_result` is true, those with calls first.
        formats_without_result: names of the formats for which `has_result` is false: they read only plain text.
    """

    auto: FormatReading
    others: tuple[FormatReading, ...]
    formats_without_result: tuple[str, ...]


def parse_with_every_format(text: str, tools: Sequence[JsonObject] = ()) -> FormatReadings:
    """Parse a text with every text format. No text causes an error; invalid calls are findings.

    Formats that read the same calls with the same findings share one result.

    Args:
        text: the output of a model.
        tools: tool definitions in OpenAI's format. JSON and Python calls without markers are read only if they call one
            of these tools.
    """
    names = [name for name in formats.list_format_names() if name != formats.AUTO]
    texts_by_reading: dict[FormatReading, list[RemainingText]] = {}
    for reading in (_parse_with_format(name, text, tools) for name in names):
        texts_by_reading.setdefault(replace(reading, remaining_texts=()), []).extend(reading.remaining_texts)
    readings = [
        replace(reading, remaining_texts=_merge_remaining(texts)) for reading, texts in texts_by_reading.items()
    ]
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


def _merge_remaining(texts: Sequence[RemainingText]) -> tuple[RemainingText, ...]:
    """Return each different text once, with the names of all formats that read it."""
    names_by_text: dict[RemainingText, list[str]] = {}
    for text in texts:
        names_by_text.setdefault(replace(text, formats=()), []).extend(text.formats)
    return tuple(replace(text, formats=tuple(names)) for text, names in names_by_text.items())


def find_example(format_name: str) -> str | None:
    """Return the example call in a text format; None for an unknown format and for `auto`."""
    is_known = format_name in formats.list_format_names() and format_name != formats.AUTO
    return formats.render([EXAMPLE_CALL], format=format_name) if is_known else None


def _parse_with_format(name: str, text: str, tools: Sequence[JsonObject]) -> FormatReading:
    decoder = formats.stream(name, tools)
    decoder.feed(text)
    partial_text = decoder.partial
    parsed = decoder.close()
    is_truncated = any(finding.code == TRUNCATED_CALL_CODE for finding in parsed.findings)
    return FormatReading(
        calls=tuple(CallView(call.id, call.name, _render_json(call.arguments)) for call in parsed.calls),
        findings=parsed.findings,
        partial_call=_render_partial_call(partial_text) if is_truncated else "",
        remaining_texts=(RemainingText((name,), parsed.text, parsed.reasoning),),
    )


def _render_partial_call(partial_text: str) -> str:
    """Return the JSON of an interrupted call with all its brackets closed; "" if the call has no readable JSON."""
    first_bracket = re.search(r"[{[]", partial_text)
    partial_json = read_partial(partial_text[first_bracket.start() :]) if first_bracket else None
    return "" if partial_json is None else _render_json(partial_json)


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
