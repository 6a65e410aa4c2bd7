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
class Rest:
    """What `formats` took for no call, all of them the same."""

    formats: tuple[str, ...]
    text: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The calls that some formats found in the text, all of them the same, and what each left. `so_far` is what the
    JSON of a call that the text breaks off in already says."""

    calls: tuple[ReadCall, ...]
    findings: tuple[Finding, ...]
    so_far: str
    rests: tuple[Rest, ...]

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(name for rest in self.rests for name in rest.formats)

    @property
    def saw(self) -> bool:
        """False where all of them took it for plain text."""
        return bool(self.calls or self.findings or any(rest.reasoning for rest in self.rests))


@dataclass(frozen=True, slots=True)
class Readings:
    """`auto` picks by opener and known tool names; `others` are the formats that saw something, those with calls first;
    `blind` are the names of the rest."""

    auto: Reading
    others: tuple[Reading, ...]
    blind: tuple[str, ...]


def read_with_every_format(text: str, tools: Sequence[JsonObject] = ()) -> Readings:
    """`tools` are in OpenAI's shape; bare JSON and Python calls are only read for known names. Never raises."""
    alone = [_reading(name, text, tools) for name in formats.names() if name != formats.AUTO]
    alike: dict[Reading, list[Rest]] = {}
    for one in alone:
        alike.setdefault(replace(one, rests=()), []).extend(one.rests)
    readings = [replace(one, rests=_together(rests)) for one, rests in alike.items()]
    return Readings(
        auto=_reading(formats.AUTO, text, tools),
        others=tuple(sorted((one for one in readings if one.saw), key=lambda one: (not one.calls, one.formats))),
        blind=tuple(name for one in readings if not one.saw for name in one.formats),
    )


def _together(rests: Sequence[Rest]) -> tuple[Rest, ...]:
    alike: dict[Rest, list[str]] = {}
    for rest in rests:
        alike.setdefault(replace(rest, formats=()), []).extend(rest.formats)
    return tuple(replace(rest, formats=tuple(names)) for rest, names in alike.items())


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
        calls=tuple(ReadCall(call.id, call.name, _json(call.arguments)) for call in parsed.calls),
        findings=parsed.findings,
        so_far=_so_far(begun) if is_cut else "",
        rests=(Rest((name,), parsed.text, parsed.reasoning),),
    )


def _so_far(begun: str) -> str:
    """What the beginning of a call says, where it is written as JSON; else nothing."""
    bracket = re.search(r"[{[]", begun)
    value = read_partial(begun[bracket.start() :]) if bracket else None
    return "" if value is None else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
