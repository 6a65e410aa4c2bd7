"""Repair of Gemma's calls whose texts lack a delimiter, if there is only one possible reading.

A wrong value is worse than an unreadable call, so a repair is refused as soon as a boundary is in doubt.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.coercion import get_allowed_types
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import FoundCall
from toolbench.engine.formats.types import ToolSchemas

MAX_BODY_LENGTH = 16_384  # characters of a block that is repaired
MOST = 64  # places at which a delimiter may be missing
_HEADING = re.compile(r"(?:\A|[\s,}])(?:call)?\s{0,64}:\s*+(?P<name>[\w.-]++)\s*+\{")
_OPENING = re.compile(r"[{,][ \n]{0,8}[\w.-]{1,128}[ \n]{0,8}:|[\[,]")
_CLOSING = re.compile(r"[,}\]]")
_NEXT_KEY = re.compile(r",\s{0,8}(?P<key>[\w.-]{1,128})\s{0,8}:")
_BARE = re.compile(
    r"(?<=[{,])(?P<key>[\w.-]{1,128}):(?P<value>[^\s,:{}\[\]\"'<|][^,:{}\[\]\"'<|\n]*+)"
    r"(?=,(?P<next>[\w.-]{1,128}):|\})"
)
_QUOTATION = 2  # stray delimiters that enclose a quotation

Strict = Callable[[str], tuple[FoundCall, ...]]


def repair_gemma_calls(body: str, quote: str, known: ToolSchemas, strict: Strict) -> tuple[FoundCall, ...]:
    """Return the calls of a block with a missing or stray delimiter.

    Args:
        body: text of the block.
        quote: the delimiter of texts.
        known: the tools.
        strict: parses a block that lacks nothing; it returns no calls if the block cannot be read.

    Returns:
        The calls of the only possible reading; none if there are several, or if the block is too long.
    """
    parts = body.split(quote)
    if len(body) > MAX_BODY_LENGTH or any(part in text for text in parts for part in _fragments(quote)):
        return ()
    if len(parts) % 2:
        return strict(_with_quotation(parts, quote) or _with_bare_texts(parts, quote, known))
    readings: list[tuple[FoundCall, ...]] = []
    certain = True
    places = list(islice(_places(body, quote, _properties(body, known)), MOST + 1))
    for place in places if len(places) <= MOST else ():
        calls = strict(body[: place.at] + quote + body[place.at :])
        if calls and calls not in readings:
            readings.append(calls)
            certain = certain and place.certain
    return readings[0] if len(readings) == 1 and certain else ()


@dataclass(frozen=True, slots=True)
class _Place:
    """A place at which a delimiter may be missing. One that is not `certain` only makes others doubtful."""

    at: int
    certain: bool


def _fragments(quote: str) -> set[str]:
    """Return the delimiter with one character missing."""
    return {quote[:at] + quote[at + 1 :] for at in range(len(quote))}


def _properties(body: str, known: ToolSchemas) -> set[str] | None:
    """Return the parameters of the tools that are called; None where one of them is not known."""
    found: set[str] = set()
    for named in _HEADING.finditer(body):
        properties = known.schemas.get(named["name"], {}).get("properties")
        if not isinstance(properties, dict):
            return None
        found |= set(properties)
    return found


def _places(body: str, quote: str, properties: set[str] | None) -> Iterator[_Place]:
    """Yield the places that give a text without the beginning of another known parameter in it."""
    marks = [found.start() for found in re.finditer(re.escape(quote), body)]
    bounds = zip([0, *(mark + len(quote) for mark in marks)], [*marks, len(body)], strict=True)
    for number, (start, end) in enumerate(bounds):
        segment = body[start:end]
        if number < len(marks):
            first = max(_begun(segment, properties), default=-1)  # a text may not begin in front of it
            for found in _OPENING.finditer(segment):
                if found.end() > first:
                    text, is_value = segment[found.end() :], found.group().endswith(":")
                    yield _Place(start + found.end(), is_value and _is_certain(text, properties))
        if number:
            in_list = body[: start - len(quote)].rstrip()[-1:] in ("[", ",")
            yield from _ends(segment, start, properties, in_list=in_list)


def _ends(segment: str, start: int, properties: set[str] | None, *, in_list: bool) -> Iterator[_Place]:
    """Yield the places at which the text that begins a segment may end."""
    last = min(_begun(segment, properties), default=len(segment))
    for found in _CLOSING.finditer(segment):
        if found.start() > last:
            return
        text, following = segment[: found.start()], _NEXT_KEY.match(segment, found.start())
        unknown = following is not None and properties is not None and following["key"] not in properties
        is_certain = not unknown and not (in_list and "," in text) and _is_certain(text, properties)
        yield _Place(start + found.start(), is_certain)


def _begun(segment: str, properties: set[str] | None) -> list[int]:
    """Return where known parameters begin in a segment."""
    return [found.start() for found in _NEXT_KEY.finditer(segment) if found["key"] in (properties or ())]


def _is_certain(text: str, properties: set[str] | None) -> bool:
    """Return whether a text has no blank at an end and, without a schema, nothing like a key in it."""
    return text == text.strip() and (properties is not None or _NEXT_KEY.search(text) is None)


def _with_quotation(parts: list[str], quote: str) -> str:
    """Return the block with its stray delimiters, which must be two in one text, as quotation marks; "" if not so."""
    stray = [
        place
        for place, (before, behind) in enumerate(pairwise(parts))
        if before and behind and before.rstrip()[-1:] not in (":", "[", ",", "") and behind.lstrip()[:1] not in ",}]"
    ]
    if len(stray) != _QUOTATION or stray[1] != stray[0] + 1:
        return ""
    first, second = stray
    text = '"'.join(parts[first : second + 2])
    return quote.join([*parts[:first], text, *parts[second + 2 :]])


def _with_bare_texts(parts: list[str], quote: str, known: ToolSchemas) -> str:
    """Return the block with delimiters around texts that have none, each up to the next known parameter."""
    named = _HEADING.search(parts[0])
    tool = named["name"] if named else ""

    def delimited(found: re.Match[str]) -> str:
        kinds = get_allowed_types(known.parameter(tool, found["key"]), known.schemas.get(tool, {}))
        is_text = "string" in kinds and not kinds & {"null", "boolean"}
        follows = found["next"] is None or known.parameter(tool, found["next"]) is not None
        if not is_text or not follows or _is_literal(found["value"]):
            return found[0]
        return f"{found['key']}:{quote}{found['value']}{quote}"

    return quote.join(part if place % 2 else _BARE.sub(delimited, part) for place, part in enumerate(parts))


def _is_literal(written: str) -> bool:
    try:
        read_value(written)
    except InvalidJsonError:
        return False
    return True
