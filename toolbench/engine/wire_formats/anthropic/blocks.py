"""The content of a chat message as blocks of Messages."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json
from toolbench.engine.types import JsonObject, Message, get_called_function
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT, get_message_text, list_structured_calls

KEPT_BLOCKS_FIELD = (
    "content_blocks"  # where an answer's own blocks stand in its chat message, to be sent back unchanged
)
INVALID_JSON_KEY = "INVALID_JSON"  # the key under which Anthropic's documentation sends arguments back that are no JSON


def build_text_block(text: str) -> JsonObject:
    """Return a block of text."""
    return {"type": "text", "text": text}


def build_user_blocks(content: Any) -> list[JsonObject]:
    """Return the blocks of a user's content; blank text is left out, since Messages refuses it."""
    parts = [build_text_block(content)] if isinstance(content, str) else content if isinstance(content, list) else []
    return [block for part in parts if isinstance(part, dict) and not is_blank_block(block := _to_block(part))]


def is_blank_block(block: JsonObject) -> bool:
    """Return whether a block is blank text."""
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _to_block(part: JsonObject) -> JsonObject:
    if part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    url = str(image.get("url", "") if isinstance(image, dict) else image)
    head, _, data = url.partition(";base64,")
    if data and head.startswith("data:"):
        source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source}


def build_result_block(travelling_id: str, message: Message | None) -> JsonObject:
    """Return a tool's message as a result; without a message, a result that says so."""
    block: JsonObject = {"type": "tool_result", "tool_use_id": travelling_id}
    if message is None:
        return {**block, "content": INTERRUPTED_RESULT, "is_error": True}
    content = message.get("content")
    text_or_blocks = content if isinstance(content, str) else build_user_blocks(content)
    return {**block, "content": text_or_blocks, **({"is_error": True} if _is_failed_result(content) else {})}


def _is_failed_result(content: Any) -> bool:
    """Return whether a result is an envelope of a failed call."""
    try:
        result = read_json(content) if isinstance(content, str) else None
    except InvalidJsonError:
        return False
    return isinstance(result, dict) and result.get("ok") is False and "tool_name" in result


def build_assistant_blocks(message: Message, ids: Sequence[str], changes: WireChanges) -> list[JsonObject]:
    """Return the blocks of an assistant's turn.

    They are its own blocks with the kept calls if these are known, otherwise text and calls.

    Args:
        message: the message in chat format.
        ids: ids of its calls as they are sent.
        changes: records what is left out.
    """
    calls = [_build_tool_use(*pair, changes) for pair in zip(list_structured_calls(message), ids, strict=True)]
    known = message.get(KEPT_BLOCKS_FIELD)
    if isinstance(known, list) and known:
        return list(_update_kept_blocks(message, known, calls))
    for name in ("reasoning_content", "reasoning"):
        if text := message.get(name):
            changes.note("unsigned_reasoning_left_out", f"$.messages[*].{name}", text)
    return [*build_user_blocks(message.get("content")), *calls]


def _update_kept_blocks(message: Message, known: list[Any], calls: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the blocks with each call in its place, and with the text of the message if a transform changed it."""
    blocks = [block for block in known if isinstance(block, dict)]
    text = get_message_text(message)
    texts = [text] if "".join(_get_text(block) for block in blocks) != text else None
    waiting = iter(calls)
    for block in blocks:
        if block.get("type") == "tool_use":
            call = next(waiting, None)
            block = {**block, **call} if call else {}
        elif block.get("type") == "text" and texts is not None:
            block = build_text_block(texts.pop()) if texts else {}
        if block and not is_blank_block(block):
            yield block
    if texts and texts[0].strip():
        yield build_text_block(texts[0])
    yield from waiting


def _get_text(block: JsonObject) -> str:
    text = block.get("text") if block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _build_tool_use(call: JsonObject, travelling_id: str, changes: WireChanges) -> JsonObject:
    function = get_called_function(call)
    given = function.get("arguments")
    value = _read_input(given)
    if value is None:
        value = {INVALID_JSON_KEY: given}
        changes.note("invalid_arguments_wrapped", "$.messages[*].content[*].input", given, value)
    return {"type": "tool_use", "id": travelling_id, "name": str(function.get("name") or ""), "input": value}


def _read_input(given: Any) -> JsonObject | None:
    """Return arguments as an object, {} for none; None if they are not an object."""
    if isinstance(given, str):
        try:
            given = read_json(given) if given.strip() else {}
        except InvalidJsonError:
            return None
    return {} if given is None else given if isinstance(given, dict) else None
