"""Repair of Gemma's calls with a missing or stray string delimiter, if there is only one possible reading.

A repair is refused if it is doubtful where a string begins or ends: a wrong value does more harm than an unreadable
call.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.coercion import get_allowed_types
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import ParsedCall
from toolbench.engine.formats.types import ToolSchemas

MAX_BODY_LENGTH = 16_384  # characters of the longest block that is repaired
MAX_CANDIDATES = 64  # positions tried; with more, the block is not repaired
_HEADING = re.compile(r"(?:\A|[\s,}])(?:call)?\s{0,64}:\s*+(?P<name>[\w.-]++)\s*+\{")
# Texts after which a string may begin: a key with its colon, and the bracket or comma before an item of a list.
_STRING_START_CANDIDATE = re.compile(r"[{,][ \n]{0,8}[\w.-]{1,128}[ \n]{0,8}:|[\[,]")
# Characters before which a string may end.
_STRING_END_CANDIDATE = re.compile(r"[,}\]]")
_COMMA_AND_KEY = re.compile(r",\s{0,8}(?P<key>[\w.-]{1,128})\s{0,8}:")
# A key and a value without delimiters, such as `city:Paris`, before another key or the end of the object.
_BARE_STRING = re.compile(
    r"(?<=[{,])(?P<key>[\w.-]{1,128}):(?P<value>[^\s,:{}\[\]\"'<|][^,:{}\[\]\"'<|\n]*+)"
    r"(?=,(?P<next>[\w.-]{1,128}):|\})"
)
_QUOTATION_DELIMITER_COUNT = 2  # stray delimiters around a quotation inside a string

ReadWithoutRepair = Callable[[str], tuple[ParsedCall, ...]]


def repair_gemma_calls(
    body: str, quote: str, offered_tools: ToolSchemas, read_without_repair: ReadWithoutRepair
) -> tuple[ParsedCall, ...]:
    """Return the calls of a block with a missing or stray delimiter.

    If the number of delimiters is odd, one more is tried at each position where it may be missing. Otherwise
    `_restore_quotation` or `_delimit_bare_strings` repairs the block.

    Args:
        body: text of the block.
        quote: the delimiter before and after strings.
        offered_tools: the schemas of the tools.
        read_without_repair: parses a block without repair; returns () if the block cannot be read.

    Returns:
        The calls of the only possible reading. () if there is no reading, more than one or an uncertain one, if the
        block has more than MAX_BODY_LENGTH characters or MAX_CANDIDATES positions to try, or if it contains a delimiter
        with one character missing.
    """
    parts = body.split(quote)
    if len(body) > MAX_BODY_LENGTH or any(fragment in text for text in parts for fragment in _list_fragments(quote)):
        return ()
    if len(parts) % 2:
        return read_without_repair(
            _restore_quotation(parts, quote) or _delimit_bare_strings(parts, quote, offered_tools)
        )
    readings: list[tuple[ParsedCall, ...]] = []
    is_certain = True
    all_candidates = _iterate_candidates(body, quote, _find_parameter_names(body, offered_tools))
    candidates = list(islice(all_candidates, MAX_CANDIDATES + 1))
    for candidate in candidates if len(candidates) <= MAX_CANDIDATES else ():
        calls = read_without_repair(body[: candidate.index] + quote + body[candidate.index :])
        if calls and calls not in readings:
            readings.append(calls)
            is_certain = is_certain and candidate.is_certain
    return readings[0] if len(readings) == 1 and is_certain else ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A position at which a delimiter may be missing.

    Attributes:
        index: the index in the body of the block.
        is_certain: whether a reading with a delimiter there may be returned; otherwise it prevents the repair.
    """

    index: int
    is_certain: bool


def _list_fragments(quote: str) -> set[str]:
    """Return all texts that are the delimiter with one character missing."""
    return {quote[:index] + quote[index + 1 :] for index in range(len(quote))}


def _find_parameter_names(body: str, offered_tools: ToolSchemas) -> set[str] | None:
    """Return the parameter names of the called tools; None if the parameters of a called tool are unknown."""
    names: set[str] = set()
    for heading in _HEADING.finditer(body):
        properties = offered_tools.schemas.get(heading["name"], {}).get("properties")
        if not isinstance(properties, dict):
            return None
        names |= set(properties)
    return names


def _iterate_candidates(body: str, quote: str, parameter_names: set[str] | None) -> Iterator[_Candidate]:
    """Yield the positions at which a delimiter may be missing.

    With a delimiter there, a string would begin that ends at the next delimiter, or a string would end that began at
    the previous delimiter. A string that would contain the key of a known parameter is left out.
    """
    delimiter_indexes = [match.start() for match in re.finditer(re.escape(quote), body)]
    starts = [0, *(index + len(quote) for index in delimiter_indexes)]
    for segment_number, (start, end) in enumerate(zip(starts, [*delimiter_indexes, len(body)], strict=True)):
        segment = body[start:end]
        if segment_number < len(delimiter_indexes):
            # A string that began before a known key would contain this key.
            last_key_start = max(_find_known_keys(segment, parameter_names), default=-1)
            for match in _STRING_START_CANDIDATE.finditer(segment):
                if match.end() > last_key_start:
                    text, is_value = segment[match.end() :], match.group().endswith(":")
                    yield _Candidate(start + match.end(), is_value and _is_certain(text, parameter_names))
        if segment_number:
            is_in_list = body[: start - len(quote)].rstrip()[-1:] in ("[", ",")
            yield from _iterate_end_candidates(segment, start, parameter_names, is_in_list=is_in_list)


def _iterate_end_candidates(
    segment: str, start: int, parameter_names: set[str] | None, *, is_in_list: bool
) -> Iterator[_Candidate]:
    """Yield the positions at which a string that begins at the start of a segment may end.

    Args:
        segment: the text from one delimiter to the next one or to the end of the body.
        start: the index of the segment in the body.
        parameter_names: the known parameters; None if they are unknown.
        is_in_list: whether the string is an item of a list.
    """
    first_key_start = min(_find_known_keys(segment, parameter_names), default=len(segment))
    for match in _STRING_END_CANDIDATE.finditer(segment):
        if match.start() > first_key_start:
            return
        text, next_key = segment[: match.start()], _COMMA_AND_KEY.match(segment, match.start())
        is_key_unknown = next_key is not None and parameter_names is not None and next_key["key"] not in parameter_names
        is_certain = not is_key_unknown and not (is_in_list and "," in text) and _is_certain(text, parameter_names)
        yield _Candidate(start + match.start(), is_certain)


def _find_known_keys(segment: str, parameter_names: set[str] | None) -> list[int]:
    """Return the indexes in a segment of the commas before keys of known parameters."""
    return [match.start() for match in _COMMA_AND_KEY.finditer(segment) if match["key"] in (parameter_names or ())]


def _is_certain(text: str, parameter_names: set[str] | None) -> bool:
    """Return whether a string has no outer white space and, if the parameters are unknown, no text like a key."""
    return text == text.strip() and (parameter_names is not None or _COMMA_AND_KEY.search(text) is None)


def _restore_quotation(parts: list[str], quote: str) -> str:
    """Return the block with quotation marks in place of two stray delimiters in one string; "" in other cases.

    `parts` is the block, split at its delimiters.
    """
    stray_indexes = [
        index
        for index, (text_before, text_after) in enumerate(pairwise(parts))
        if text_before
        and text_after
        and text_before.rstrip()[-1:] not in (":", "[", ",", "")
        and text_after.lstrip()[:1] not in ",}]"
    ]
    if len(stray_indexes) != _QUOTATION_DELIMITER_COUNT or stray_indexes[1] != stray_indexes[0] + 1:
        return ""
    first_index, second_index = stray_indexes
    text = '"'.join(parts[first_index : second_index + 2])
    return quote.join([*parts[:first_index], text, *parts[second_index + 2 :]])


def _delimit_bare_strings(parts: list[str], quote: str, offered_tools: ToolSchemas) -> str:
    """Return the block with delimiters around strings that have none.

    A value becomes a string if it is no literal, if the schema of the first called tool allows a string there, but
    neither null nor a boolean, and if a known parameter or the end of the object follows.

    `parts` is the block, split at its delimiters.
    """
    heading = _HEADING.search(parts[0])
    tool_name = heading["name"] if heading else ""

    def delimit(match: re.Match[str]) -> str:
        schema = offered_tools.find_parameter(tool_name, match["key"])
        types = get_allowed_types(schema, offered_tools.schemas.get(tool_name, {}))
        is_string = "string" in types and not types & {"null", "boolean"}
        is_next_known = match["next"] is None or offered_tools.find_parameter(tool_name, match["next"]) is not None
        if not is_string or not is_next_known or _is_literal(match["value"]):
            return match[0]
        return f"{match['key']}:{quote}{match['value']}{quote}"

    return quote.join(part if index % 2 else _BARE_STRING.sub(delimit, part) for index, part in enumerate(parts))


def _is_literal(text: str) -> bool:
    try:
        read_value(text)
    except InvalidJsonError:
        return False
    return True
