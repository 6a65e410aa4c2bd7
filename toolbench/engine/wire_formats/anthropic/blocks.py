"""The content of a chat message as blocks of Messages."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import find_object, read_json
from toolbench.engine.types import JsonObject, Message, get_called_function
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT, get_message_text, list_structured_calls

KEPT_BLOCKS_FIELD = "content_blocks"  # field of a chat message with the received blocks, to be sent back unchanged
INVALID_JSON_KEY = "INVALID_JSON"  # key for arguments that are not a JSON object, as in Anthropic's documentation


def build_text_block(text: str) -> JsonObject:
    """Return a block of text."""
    return {"type": "text", "text": text}


def build_user_blocks(content: Any) -> list[JsonObject]:
    """Return content of a chat message as blocks; blank text is left out, since Messages refuses it."""
    parts = [build_text_block(content)] if isinstance(content, str) else content if isinstance(content, list) else []
    return [block for part in parts if isinstance(part, dict) and not is_blank_block(block := _to_block(part))]


def is_blank_block(block: JsonObject) -> bool:
    """Return whether a block is blank text."""
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _to_block(part: JsonObject) -> JsonObject:
    """Return a part of a chat message as a block: an image is converted, any other part unchanged."""
    if part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    url = str(image.get("url", "") if isinstance(image, dict) else image)
    prefix, _, data = url.partition(";base64,")
    if data and prefix.startswith("data:"):
        source = {"type": "base64", "media_type": prefix.removeprefix("data:"), "data": data}
    else:
        source = {"type": "url", "url": url}
    return {"type": "image", "source": source}


def build_result_block(wire_id: str, message: Message | None) -> JsonObject:
    """Return a tool message as a result block; for None, an error result for an interrupted call.

    Args:
        wire_id: id of the call as it is sent to the endpoint.
        message: the tool message; None if the call has no result.
    """
    block: JsonObject = {"type": "tool_result", "tool_use_id": wire_id}
    if message is None:
        return {**block, "content": INTERRUPTED_RESULT, "is_error": True}
    content = message.get("content")
    text_or_blocks = content if isinstance(content, str) else build_user_blocks(content)
    return {**block, "content": text_or_blocks, **({"is_error": True} if _is_failed_result(content) else {})}


def _is_failed_result(content: Any) -> bool:
    """Return whether a result is an envelope of a failed call."""
    result = find_object(content) if isinstance(content, str) else None
    return result is not None and result.get("ok") is False and "tool_name" in result


def build_assistant_blocks(message: Message, wire_ids: Sequence[str], changes: WireChanges) -> list[JsonObject]:
    """Return the blocks of an assistant's turn.

    If the message has received blocks, they are returned with the current calls of the message; otherwise blocks are
    built from its text and its calls.

    Args:
        message: the message in chat format.
        wire_ids: ids of its calls as they are sent to the endpoint.
        changes: records reasoning that is left out and arguments that are sent under INVALID_JSON_KEY.
    """
    call_blocks = [
        _build_tool_use(*pair, changes) for pair in zip(list_structured_calls(message), wire_ids, strict=True)
    ]
    kept_blocks = message.get(KEPT_BLOCKS_FIELD)
    if isinstance(kept_blocks, list) and kept_blocks:
        return list(_update_kept_blocks(message, kept_blocks, call_blocks))
    for name in ("reasoning_content", "reasoning"):
        if text := message.get(name):
            changes.record("unsigned_reasoning_left_out", f"$.messages[*].{name}", text)
    return [*build_user_blocks(message.get("content")), *call_blocks]


def _update_kept_blocks(
    message: Message, kept_blocks: list[Any], call_blocks: list[JsonObject]
) -> Iterator[JsonObject]:
    """Yield the received blocks with the current calls, and with the text if a transform changed it.

    The current calls take the places of the received calls in order. Further current calls follow at the end; received
    calls without a current one are left out. A changed text takes the place of the first text block; the other text
    blocks are left out. Blank text blocks are always left out.
    """
    blocks = [block for block in kept_blocks if isinstance(block, dict)]
    text = get_message_text(message)
    # The changed text until it is yielded, then empty; None if the text did not change.
    unplaced_text = [text] if "".join(_get_text(block) for block in blocks) != text else None
    unplaced_call_blocks = iter(call_blocks)
    for block in blocks:
        if block.get("type") == "tool_use":
            call_block = next(unplaced_call_blocks, None)
            block = {**block, **call_block} if call_block else {}
        elif block.get("type") == "text" and unplaced_text is not None:
            block = build_text_block(unplaced_text.pop()) if unplaced_text else {}
        if block and not is_blank_block(block):
            yield block
    if unplaced_text and unplaced_text[0].strip():
        yield build_text_block(unplaced_text[0])
    yield from unplaced_call_blocks


def _get_text(block: JsonObject) -> str:
    text = block.get("text") if block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _build_tool_use(call: JsonObject, wire_id: str, changes: WireChanges) -> JsonObject:
    """Return a call as a tool_use block; arguments that are no object are sent under INVALID_JSON_KEY."""
    function = get_called_function(call)
    arguments = function.get("arguments")
    call_input = _read_input(arguments)
    if call_input is None:
        call_input = {INVALID_JSON_KEY: arguments}
        changes.record("invalid_arguments_wrapped", "$.messages[*].content[*].input", arguments, call_input)
    return {"type": "tool_use", "id": wire_id, "name": str(function.get("name") or ""), "input": call_input}


def _read_input(arguments: Any) -> JsonObject | None:
    """Return arguments as an object, {} for missing or blank ones; None if they are not an object."""
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except InvalidJsonError:
            return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None
