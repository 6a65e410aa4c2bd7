"""Repair of Gemma's calls in which a string lacks a delimiter, if there is only one possible reading.

A repair is refused if any boundary is in doubt, because a wrong value does more harm than an unreadable call.
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
MAX_CANDIDATES = 64  # positions tried; with more, the block is not repaired
_HEADING = re.compile(r"(?:\A|[\s,}])(?:call)?\s{0,64}:\s*+(?P<name>[\w.-]++)\s*+\{")
_OPENING = re.compile(r"[{,][ \n]{0,8}[\w.-]{1,128}[ \n]{0,8}:|[\[,]")
_CLOSING = re.compile(r"[,}\]]")
_NEXT_KEY = re.compile(r",\s{0,8}(?P<key>[\w.-]{1,128})\s{0,8}:")
_BARE_STRING = re.compile(
    r"(?<=[{,])(?P<key>[\w.-]{1,128}):(?P<value>[^\s,:{}\[\]\"'<|][^,:{}\[\]\"'<|\n]*+)"
    r"(?=,(?P<next>[\w.-]{1,128}):|\})"
)
_QUOTATION_DELIMITERS = 2  # stray delimiters around a quotation inside a string

ReadStrictly = Callable[[str], tuple[FoundCall, ...]]


def repair_gemma_calls(body: str, quote: str, known: ToolSchemas, read_strictly: ReadStrictly) -> tuple[FoundCall, ...]:
    """Return the calls of a block with a missing or stray delimiter.

    Args:
        body: text of the block.
        quote: the delimiter before and after strings.
        known: the schemas of the tools.
        read_strictly: parses a block without repair; returns () if the block cannot be read.

    Returns:
        The calls of the only possible reading; () if there is none or more than one, if one is uncertain, if the block
        is too long, or if it contains a delimiter with one character missing.
    """
    parts = body.split(quote)
    if len(body) > MAX_BODY_LENGTH or any(fragment in text for text in parts for fragment in _list_fragments(quote)):
        return ()
    if len(parts) % 2:
        return read_strictly(_restore_quotation(parts, quote) or _delimit_bare_strings(parts, quote, known))
    readings: list[tuple[FoundCall, ...]] = []
    is_certain = True
    candidates = list(islice(_iterate_candidates(body, quote, _find_properties(body, known)), MAX_CANDIDATES + 1))
    for candidate in candidates if len(candidates) <= MAX_CANDIDATES else ():
        calls = read_strictly(body[: candidate.index] + quote + body[candidate.index :])
        if calls and calls not in readings:
            readings.append(calls)
            is_certain = is_certain and candidate.certain
    return readings[0] if len(readings) == 1 and is_certain else ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A position at which a delimiter may be missing.

    Attributes:
        index: the index in the body of the block.
        certain: whether a reading with a delimiter there may be returned; otherwise that reading prevents a repair.
    """

    index: int
    certain: bool


def _list_fragments(quote: str) -> set[str]:
    """Return all texts that are the delimiter with one character missing."""
    return {quote[:at] + quote[at + 1 :] for at in range(len(quote))}


def _find_properties(body: str, known: ToolSchemas) -> set[str] | None:
    """Return the parameters of the tools that are called; None if the schema of one of them is unknown."""
    names: set[str] = set()
    for heading in _HEADING.finditer(body):
        properties = known.schemas.get(heading["name"], {}).get("properties")
        if not isinstance(properties, dict):
            return None
        names |= set(properties)
    return names


def _iterate_candidates(body: str, quote: str, properties: set[str] | None) -> Iterator[_Candidate]:
    """Yield the positions at which a delimiter gives a string that does not contain the key of a known parameter."""
    delimiters = [found.start() for found in re.finditer(re.escape(quote), body)]
    bounds = zip([0, *(delimiter + len(quote) for delimiter in delimiters)], [*delimiters, len(body)], strict=True)
    for segment_number, (start, end) in enumerate(bounds):
        segment = body[start:end]
        if segment_number < len(delimiters):
            last_key_start = max(
                _find_known_keys(segment, properties), default=-1
            )  # a string cannot begin before a known parameter
            for found in _OPENING.finditer(segment):
                if found.end() > last_key_start:
                    text, is_value = segment[found.end() :], found.group().endswith(":")
                    yield _Candidate(start + found.end(), is_value and _is_certain(text, properties))
        if segment_number:
            in_list = body[: start - len(quote)].rstrip()[-1:] in ("[", ",")
            yield from _iterate_end_candidates(segment, start, properties, in_list=in_list)


def _iterate_end_candidates(
    segment: str, start: int, properties: set[str] | None, *, in_list: bool
) -> Iterator[_Candidate]:
    """Yield the positions at which a string that begins at the start of a segment may end."""
    first_key_start = min(_find_known_keys(segment, properties), default=len(segment))
    for found in _CLOSING.finditer(segment):
        if found.start() > first_key_start:
            return
        text, next_key = segment[: found.start()], _NEXT_KEY.match(segment, found.start())
        is_key_unknown = next_key is not None and properties is not None and next_key["key"] not in properties
        is_certain = not is_key_unknown and not (in_list and "," in text) and _is_certain(text, properties)
        yield _Candidate(start + found.start(), is_certain)


def _find_known_keys(segment: str, properties: set[str] | None) -> list[int]:
    """Return the indexes in a segment at which keys of known parameters begin, with the comma before them."""
    return [found.start() for found in _NEXT_KEY.finditer(segment) if found["key"] in (properties or ())]


def _is_certain(text: str, properties: set[str] | None) -> bool:
    """Return whether a string has no outer white space and, if the schema is unknown, no text like a key in it."""
    return text == text.strip() and (properties is not None or _NEXT_KEY.search(text) is None)


def _restore_quotation(parts: list[str], quote: str) -> str:
    """Return the block with two stray delimiters in one string replaced by quotation marks; "" in other cases."""
    stray = [
        index
        for index, (before, after) in enumerate(pairwise(parts))
        if before and after and before.rstrip()[-1:] not in (":", "[", ",", "") and after.lstrip()[:1] not in ",}]"
    ]
    if len(stray) != _QUOTATION_DELIMITERS or stray[1] != stray[0] + 1:
        return ""
    first, second = stray
    text = '"'.join(parts[first : second + 2])
    return quote.join([*parts[:first], text, *parts[second + 2 :]])


def _delimit_bare_strings(parts: list[str], quote: str, known: ToolSchemas) -> str:
    """Return the block with delimiters around strings that have none, each up to the next known parameter."""
    heading = _HEADING.search(parts[0])
    tool = heading["name"] if heading else ""

    def delimit(found: re.Match[str]) -> str:
        types = get_allowed_types(known.parameter(tool, found["key"]), known.schemas.get(tool, {}))
        is_string = "string" in types and not types & {"null", "boolean"}
        is_next_known = found["next"] is None or known.parameter(tool, found["next"]) is not None
        if not is_string or not is_next_known or _is_literal(found["value"]):
            return found[0]
        return f"{found['key']}:{quote}{found['value']}{quote}"

    return quote.join(part if index % 2 else _BARE_STRING.sub(delimit, part) for index, part in enumerate(parts))


def _is_literal(written: str) -> bool:
    try:
        read_value(written)
    except InvalidJsonError:
        return False
    return True
