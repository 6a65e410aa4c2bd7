"""Calls in text between <tool_call> tags, as the case study parses them.

A tag is here `<tool_call>` with its content and `</tool_call>`. The decoder of text formats finds the tags that are not
quoted; this module parses the content of the tags.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from toolbench.engine.formats.decoder import TextDecoder
from toolbench.engine.formats.families.hermes import END_MARKER, HERMES, START_MARKER
from toolbench.engine.formats.specification import TRUNCATED_BLOCK, Block, ParsedBlock, ParsedCall, TextFormat
from toolbench.engine.formats.types import DecoderEvent, ToolSchemas
from toolbench.engine.strict_json import find_object, write_json
from toolbench.engine.types import JsonObject

# Such as `get_weather` or `get_weather {"city": "Oslo"}`.
_NAME_AND_ARGUMENTS = re.compile(r"(?P<name>[a-zA-Z0-9_.-]+)\s*(?P<arguments>\{.*\})?", re.DOTALL)
# A name has at least one letter or digit.
_NAME = re.compile(r"[_.-]*[a-zA-Z0-9][a-zA-Z0-9_.-]*")


def _read_body(body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
    """Return a placeholder call for a closed tag, whatever its content, and no call for an unclosed tag."""
    return TRUNCATED_BLOCK if is_truncated else ParsedBlock((ParsedCall("tag", {}),))


# A tag after a backslash is a quotation. It stays text, since a NUL character would have to follow `\<tool_call>` for
# this block to begin (`body_starts`).
_ESCAPED_TAG_BLOCK = Block(f"\\{START_MARKER}", _read_body, body_starts=("\0",), skipped_pattern=re.compile(""))
_TAG_FORMAT = TextFormat(
    "tags",
    (Block(START_MARKER, _read_body, (END_MARKER,), is_certain=True), _ESCAPED_TAG_BLOCK),
    HERMES.layout,
    HERMES.prompt,
    reasoning_markers=(),
)


def extract_tagged_calls(content: str, tool_names: Collection[str] = ()) -> tuple[str, list[JsonObject]]:
    """Return the trimmed text without the tags that were read, and the calls in these tags, in order.

    Tags with unreadable content are removed, too. The call in the Nth removed tag has the id `tag_call_N`. If no tag
    has a readable call, the text is returned unchanged. An unclosed tag is text; an unclosed code block lasts until the
    end of the text.

    Args:
        content: the text of the answer.
        tool_names: names of the offered tools. If there are any, and there is text outside of the tags, a tag that
            contains only another name stays in the text and is no call.
    """
    calls: list[JsonObject | None] = []
    tag_spans = list(_iterate_tag_spans(content))
    has_text = "".join(_iterate_text_around(content, tag_spans)).strip() != ""
    removed_spans: list[tuple[int, int]] = []
    for start, end in tag_spans:
        payload = content[start + len(START_MARKER) : end - len(END_MARKER)].strip()
        is_mention = tool_names and has_text and _NAME.fullmatch(payload) and payload not in tool_names
        if not is_mention:
            calls.append(_build_call(len(calls) + 1, payload))
            removed_spans.append((start, end))
    readable_calls = [call for call in calls if call is not None]
    return (
        ("".join(_iterate_text_around(content, removed_spans)).strip(), readable_calls)
        if readable_calls
        else (content, [])
    )


def _iterate_text_around(content: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the parts of the text before, between and after the spans, also empty ones."""
    index = 0
    for start, end in spans:
        yield content[index:start]
        index = end
    yield content[index:]


def _iterate_tag_spans(content: str) -> Iterator[tuple[int, int]]:
    """Yield start and end index of each tag that is closed and not quoted; the end is exclusive."""
    index = 0
    for event in _iterate_events(content):
        tag = event.call.raw_text if event.call else ""
        start = content.index(tag, index) if tag else index + len(event.text)
        index = start + len(tag)
        if tag:
            yield start, index


def _iterate_events(content: str) -> Iterator[DecoderEvent]:
    """Yield the decoder's events in order: text, and a call for each tag."""
    decoder = TextDecoder(_TAG_FORMAT, ToolSchemas())
    yield from decoder.feed(content)
    decoder.close()
    yield from decoder.feed("")


def _build_call(position: int, payload: str) -> JsonObject | None:
    """Return the call in the trimmed content of a tag, with the id `tag_call_{position}`; None if it is unreadable."""
    name, arguments = _parse_json_payload(payload) if payload.startswith("{") else _parse_name_payload(payload)
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        return None
    function = {"name": name.strip(), "arguments": _render_arguments(arguments)}
    return {"id": f"tag_call_{position}", "type": "function", "function": function}


def _parse_json_payload(payload: str) -> tuple[object, object]:
    """Return name and arguments of a call written as a JSON object; (None, None) if the payload is no JSON object."""
    call_object = find_object(payload)
    if call_object is None:
        return None, None
    function = call_object.get("function")
    if isinstance(function, dict):
        call_object = function
    return call_object.get("name"), call_object.get("arguments", call_object.get("args"))


def _parse_name_payload(payload: str) -> tuple[object, object]:
    """Return name and arguments of a call written as `name` or `name {…}`; (None, None) if the payload is neither."""
    match = _NAME_AND_ARGUMENTS.fullmatch(payload)
    if match is None:
        return None, None
    arguments_text = match["arguments"]
    arguments = find_object(arguments_text) if arguments_text else {}
    return (None, None) if arguments is None else (match["name"], arguments)


def _render_arguments(arguments: object) -> str:
    if isinstance(arguments, str) and arguments.strip():
        return arguments
    return write_json(arguments) if isinstance(arguments, dict) else "{}"
