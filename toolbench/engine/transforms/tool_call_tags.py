"""Calls in text between <tool_call> tags, as the case study parses them.

The decoder of text formats finds where a tag stands and whether it is only quoted; its content is parsed here.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.decoder import TextDecoder
from toolbench.engine.formats.families.hermes import CLOSER, HERMES, OPENER
from toolbench.engine.formats.specification import Block, FoundCall, ParsedBlock, TextFormat
from toolbench.engine.formats.types import DecoderEvent, ToolSchemas
from toolbench.engine.strict_json import read_json, write_json
from toolbench.engine.types import JsonObject

_NAMED = re.compile(r"(?P<name>[a-zA-Z0-9_.-]+)\s*(?P<arguments>\{.*\})?", re.DOTALL)
_NAME = re.compile(r"[_.-]*[a-zA-Z0-9][a-zA-Z0-9_.-]*")


def _read_body(body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
    """Return a call for each closed tag, whatever its content; an unclosed tag is text."""
    return ParsedBlock(problem="call_cut") if cut else ParsedBlock((FoundCall("tag", {}),))


# Never begins a call: the opener is quoted and stays text.
_ESCAPED = Block(f"\\{OPENER}", _read_body, starts=("\0",), skip=re.compile(""))
_TAGS = TextFormat(
    "tags", (Block(OPENER, _read_body, (CLOSER,), certain=True), _ESCAPED), HERMES.layout, HERMES.prompt, reasoning=()
)


def extract_tagged_calls(content: str, names: Collection[str] = ()) -> tuple[str, list[JsonObject]]:
    """Return the text without its tags, trimmed, and the calls in order.

    Ids follow the position of the tags: `tag_call_1` is the first tag, and an unreadable one leaves a gap. Without a
    readable tag, the text is unchanged and there is no call. An unclosed tag is text; an unclosed code block lasts
    until the end.

    Args:
        content: the text.
        names: names of tools; if there are any and words stand beside the tags, only tags with one of these are calls.
    """
    calls: list[JsonObject | None] = []
    tags = list(_find_tags(content))
    has_text = "".join(_get_text_between(content, tags)).strip() != ""
    cut: list[tuple[int, int]] = []
    for start, end in tags:
        call = _build_call(len(calls) + 1, content[start + len(OPENER) : end - len(CLOSER)])
        if not (call and names and has_text and call["function"]["name"] not in names):
            calls.append(call)
            cut.append((start, end))
    read = [call for call in calls if call is not None]
    return ("".join(_get_text_between(content, cut)).strip(), read) if read else (content, [])


def _get_text_between(content: str, cut: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the text around these places."""
    at = 0
    for start, end in cut:
        yield content[at:start]
        at = end
    yield content[at:]


def _find_tags(content: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each tag that is closed and not quoted."""
    at = 0
    for piece in _list_parts(content):
        raw = piece.call.raw if piece.call else ""
        start = content.index(raw, at) if raw else at + len(piece.text)
        at = start + len(raw)
        if raw:
            yield start, at


def _list_parts(content: str) -> Iterator[DecoderEvent]:
    """Yield the text and the tags in order."""
    decoder = TextDecoder(_TAGS, ToolSchemas())
    yield from decoder.feed(content)
    decoder.close()
    yield from decoder.feed("")


def _build_call(position: int, payload: str) -> JsonObject | None:
    payload = payload.strip()
    name, arguments = _parse_json_payload(payload) if payload.startswith("{") else _parse_name_payload(payload)
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        return None
    function = {"name": name.strip(), "arguments": _render_arguments(arguments)}
    return {"id": f"tag_call_{position}", "type": "function", "function": function}


def _parse_json_payload(payload: str) -> tuple[object, object]:
    found = _parse_object(payload)
    if found is None:
        return None, None
    function = found.get("function")
    if isinstance(function, dict):
        found = function
    return found.get("name"), found.get("arguments", found.get("args"))


def _parse_name_payload(payload: str) -> tuple[object, object]:
    named = _NAMED.fullmatch(payload)
    if named is None:
        return None, None
    written = named["arguments"]
    arguments = _parse_object(written) if written else {}
    return (None, None) if arguments is None else (named["name"], arguments)


def _parse_object(text: str) -> JsonObject | None:
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def _render_arguments(arguments: object) -> str:
    if isinstance(arguments, str) and arguments.strip():
        return arguments
    return write_json(arguments) if isinstance(arguments, dict) else "{}"
