"""Calls that a model writes into its text between <tool_call> tags."""

import re
from collections.abc import Iterator

from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import read_json, write_json
from toolbench.engine.messages import JsonObject

OPENER, CLOSER = "<tool_call>", "</tool_call>"
_NEXT = re.compile(r"`+|\\<|" + OPENER)
_NAMED = re.compile(r"(?P<name>[a-zA-Z0-9_.-]+)\s*(?P<arguments>\{.*\})?", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_FENCE = 3  # backticks that open a code block; fewer open inline code, which ends with its line


def cut_tagged_calls(content: str) -> tuple[str, list[JsonObject]]:
    """The text without its tags, trimmed, and the calls in order, with ids `tool_call` position by position:
    `tag_call_1` is the first tag, and one that cannot be read leaves a gap. No readable tag: the text as it was and
    an empty list. An unclosed tag is text; an unclosed code block runs to the end."""
    spans = list(tag_spans(content))
    read = [_call(position, content[start + len(OPENER) : end]) for position, (start, end) in enumerate(spans, 1)]
    calls = [call for call in read if call is not None]
    if not calls:
        return content, []
    kept, at = [], 0
    for start, end in spans:
        kept.append(content[at:start])
        at = end + len(CLOSER)
    return "".join([*kept, content[at:]]).strip(), calls


def tag_spans(content: str) -> Iterator[tuple[int, int]]:
    """(where a tag opens, where its closing tag begins) for each tag that is not quoted."""
    at = 0
    while found := _NEXT.search(content, at):
        at = found.end()
        if found.group() == OPENER:
            closer = content.find(CLOSER, at)
            if closer < 0:
                return
            yield found.start(), closer
            at = closer + len(CLOSER)
        elif found.group().startswith("`"):
            at = _end_of_code(content, at, len(found.group()))


def _end_of_code(content: str, at: int, ticks: int) -> int:
    """Where the code ends that `ticks` backticks opened just before `at`; `at` itself for backticks that open
    nothing."""
    closing = re.compile(rf"(?<!`)`{{{ticks}}}(?!`)")
    if ticks >= _FENCE:
        closed = closing.search(content, at)
        return closed.end() if closed else len(content)
    line_end = content.find("\n", at)
    closed = closing.search(content, at, line_end if line_end >= 0 else len(content))
    return closed.end() if closed else at


def _call(position: int, payload: str) -> JsonObject | None:
    payload = payload.strip()
    name, arguments = _from_json(payload) if payload.startswith("{") else _from_name(payload)
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        return None
    function = {"name": name.strip(), "arguments": _text_of(arguments)}
    return {"id": f"tag_call_{position}", "type": "function", "function": function}


def _from_json(payload: str) -> tuple[object, object]:
    found = _json_object(payload)
    if found is None:
        return None, None
    function = found.get("function")
    if isinstance(function, dict):
        found = function
    return found.get("name"), found.get("arguments", found.get("args"))


def _from_name(payload: str) -> tuple[object, object]:
    named = _NAMED.fullmatch(payload)
    if named is None:
        return None, None
    written = named["arguments"]
    arguments = _json_object(written) if written else {}
    return (None, None) if arguments is None else (named["name"], arguments)


def _json_object(text: str) -> JsonObject | None:
    try:
        value = read_json(text)
    except BadJson:
        return None
    return value if isinstance(value, dict) else None


def _text_of(arguments: object) -> str:
    if isinstance(arguments, str) and arguments.strip():
        return arguments
    return write_json(arguments) if isinstance(arguments, dict) else "{}"
