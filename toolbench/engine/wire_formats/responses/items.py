"""Items of Responses (messages, calls, results, reasoning) for the messages of a chat."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.strict_json import get_text, write_json
from toolbench.engine.types import JsonObject, Message, get_called_function
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT, get_message_text, list_structured_calls

KEPT_ITEMS_FIELD = "output_items"  # field of a chat message with the received items, to be sent back unchanged
_TEXT_PART_TYPES = {"text": "output_text", "refusal": "refusal"}  # type of a message's part by the field of its text


def list_objects(value: Any) -> list[JsonObject]:
    """Return the objects of a list; empty for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def list_message_texts(items: Sequence[JsonObject], field: str) -> list[str]:
    """Return the texts of all message items, or their refusals, without empty ones.

    Args:
        items: items of any type.
        field: `text` for texts, `refusal` for refusals.
    """
    messages = (item for item in items if item.get("type") == "message")
    parts = (part for item in messages for part in list_objects(item.get("content")))
    return [
        text for part in parts if part.get("type") == _TEXT_PART_TYPES[field] and (text := get_text(part.get(field)))
    ]


def build_message_item(role: str, content: Any) -> JsonObject:
    """Return a message item with text, or with the parts of a chat message as parts of Responses.

    Content that is neither text nor a list of parts becomes an empty text.
    """
    is_list = isinstance(content, list)
    return {"type": "message", "role": role, "content": [*map(_to_part, content)] if is_list else get_text(content)}


def _to_part(part: Any) -> Any:
    """Return a part of a chat message, or a text, as a part of Responses; other types of parts are unchanged."""
    if not isinstance(part, dict):
        return {"type": "input_text", "text": part}
    if part.get("type") == "text":
        return {**part, "type": "input_text"}
    if part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    image = image if isinstance(image, dict) else {"url": image}
    return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail", "auto")}


def build_result_item(wire_id: str, message: Message | None) -> JsonObject:
    """Return a tool message as the output of a call; for None, the output of an interrupted call.

    Args:
        wire_id: id of the call as it is sent to the endpoint.
        message: the tool message; None if the call has no result.
    """
    content = INTERRUPTED_RESULT if message is None else message.get("content")
    output = [*map(_to_part, content)] if isinstance(content, list) else get_text(content)
    return {"type": "function_call_output", "call_id": wire_id, "output": output}


def build_assistant_items(message: Message, wire_ids: Sequence[str], changes: WireChanges) -> list[JsonObject]:
    """Return the items of an assistant's turn.

    If the message has received items, they are returned with the current calls of the message; otherwise items are
    built from its calls and its text or refusal.

    Args:
        message: the message in chat format.
        wire_ids: ids of its calls as they are sent to the endpoint.
        changes: records what is left out.
    """
    call_items = [_build_call(*pair) for pair in zip(list_structured_calls(message), wire_ids, strict=True)]
    if kept_items := list_objects(message.get(KEPT_ITEMS_FIELD)):
        return _remove_trailing_reasoning(list(_update_kept_items(message, kept_items, call_items)), changes)
    for name in ("reasoning_content", "reasoning"):
        if text := message.get(name):
            changes.record("reasoning_without_item_left_out", f"$.messages[*].{name}", text)
    text = get_message_text(message) or get_text(message.get("refusal"))
    return [*([build_message_item("assistant", text)] if text.strip() else []), *call_items]


def _update_kept_items(message: Message, items: list[JsonObject], call_items: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the received items with the current calls, and with the text if a transform changed it.

    The current calls take the places of the received calls in order. Further current calls follow at the end; received
    calls without a current one are left out. A changed text takes the place of the first message item; the other
    message items are left out.
    """
    text = get_message_text(message)
    # The changed text until it is yielded, then empty; None if the text did not change.
    unplaced_text = [text] if "".join(list_message_texts(items, "text")) != text else None
    unplaced_call_items = iter(call_items)
    for item in items:
        if item.get("type") == "function_call":
            call_item = next(unplaced_call_items, None)
            if call_item is not None:
                yield {**item, **call_item}
        elif item.get("type") == "message" and unplaced_text is not None:
            if unplaced_text and unplaced_text[0].strip():
                yield build_message_item("assistant", unplaced_text[0])
            unplaced_text = []
        else:
            yield item
    if unplaced_text and unplaced_text[0].strip():
        yield build_message_item("assistant", unplaced_text[0])
    yield from unplaced_call_items


def _remove_trailing_reasoning(items: list[JsonObject], changes: WireChanges) -> list[JsonObject]:
    """Return the items without reasoning at the end, since OpenAI refuses it without the item after it."""
    kept_count = len(items)
    while kept_count and items[kept_count - 1].get("type") == "reasoning":
        kept_count -= 1
    if kept_count < len(items):
        changes.record("reasoning_without_item_left_out", "$.input[*]", [item.get("id") for item in items[kept_count:]])
    return items[:kept_count]


def _build_call(call: JsonObject, wire_id: str) -> JsonObject:
    function = get_called_function(call)
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else write_json({} if arguments is None else arguments)
    return {"type": "function_call", "call_id": wire_id, "name": str(function.get("name") or ""), "arguments": text}
