"""What every dialect of tool calls reads in one text, as the format viewer shows it."""

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
MAX_TEXT_CHARS = 8_000  # characters; every one is read by some sixty formats


@dataclass(frozen=True, slots=True)
class CallView:
    id: str
    name: str
    arguments: str  # as JSON


@dataclass(frozen=True, slots=True)
class RemainingText:
    """What `formats` took for no call, all of them the same."""

    formats: tuple[str, ...]
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class FormatReading:
    """The calls that some formats found in the text, all of them the same, and what each left. `partial_call` is what
    the JSON of a call that the text breaks off in already says."""

    calls: tuple[CallView, ...]
    findings: tuple[Finding, ...]
    partial_call: str
    rests: tuple[RemainingText, ...]

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(name for rest in self.rests for name in rest.formats)

    @property
    def has_result(self) -> bool:
        """False where all of them took it for plain text."""
        return bool(self.calls or self.findings or any(rest.reasoning for rest in self.rests))


@dataclass(frozen=True, slots=True)
class FormatReadings:
    """`auto` picks by opener and known tool names; `others` are the formats that saw something, those with calls first;
    `formats_without_result` are the names of the rest."""

    auto: FormatReading
    others: tuple[FormatReading, ...]
    formats_without_result: tuple[str, ...]


def parse_with_every_format(text: str, tools: Sequence[JsonObject] = ()) -> FormatReadings:
    """`tools` are in OpenAI's shape; bare JSON and Python calls are only read for known names. Never raises."""
    alone = [_parse_with_format(name, text, tools) for name in formats.list_format_names() if name != formats.AUTO]
    alike: dict[FormatReading, list[RemainingText]] = {}
    for one in alone:
        alike.setdefault(replace(one, rests=()), []).extend(one.rests)
    readings = [replace(one, rests=_merge_remaining(rests)) for one, rests in alike.items()]
    return FormatReadings(
        auto=_parse_with_format(formats.AUTO, text, tools),
        others=tuple(sorted((one for one in readings if one.has_result), key=lambda one: (not one.calls, one.formats))),
        formats_without_result=tuple(name for one in readings if not one.has_result for name in one.formats),
    )


def _merge_remaining(rests: Sequence[RemainingText]) -> tuple[RemainingText, ...]:
    alike: dict[RemainingText, list[str]] = {}
    for rest in rests:
        alike.setdefault(replace(rest, formats=()), []).extend(rest.formats)
    return tuple(replace(rest, formats=tuple(names)) for rest, names in alike.items())


def find_example(format: str) -> str | None:
    """How the format writes a call of the example's tool; None for a format that nobody knows."""
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
    """What the beginning of a call says, where it is written as JSON; else nothing."""
    bracket = re.search(r"[{[]", begun)
    value = read_partial(begun[bracket.start() :]) if bracket else None
    return "" if value is None else _render_json(value)


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
