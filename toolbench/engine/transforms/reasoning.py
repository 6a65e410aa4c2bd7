"""Transforms that remove some or all reasoning from the messages of a request, or move it into the text."""

from collections.abc import Callable

from toolbench.engine.transforms.messages import MESSAGE
from toolbench.engine.types import JsonObject, Message, ResultMessage
from toolbench.engine.wire_formats.anthropic.blocks import KEPT_BLOCKS_FIELD
from toolbench.engine.wire_formats.content_parts import PARTS_FIELD
from toolbench.engine.wire_formats.responses.items import KEPT_ITEMS_FIELD

__all__ = ["MESSAGE", "REASONING_HISTORY"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
# Types of the blocks of Messages, parts of Mistral's answers and items of Responses that contain reasoning.
THINKING_BLOCK_TYPES = ("thinking", "redacted_thinking", "reasoning")
# Fields that keep a message's content as received: blocks of Messages, parts of Mistral's answers, items of Responses.
KEPT_CONTENT_FIELDS = (KEPT_BLOCKS_FIELD, PARTS_FIELD, KEPT_ITEMS_FIELD)

REASONING_HISTORY = {
    "none": "reasoning_left_out",
    "last_turn": "reasoning_of_earlier_turns_left_out",
    "details": "reasoning_text_left_out",
    "tags": "reasoning_in_think_tags",
}
"""Name of the transform for each value of the policy key `reasoning_history`, except `all`, which needs none."""


@MESSAGE.register
def reasoning_left_out(messages: list[Message]) -> list[Message]:
    """Leave out all reasoning, for endpoints that refuse unknown fields."""
    return _map_messages(messages, _remove_reasoning)


@MESSAGE.register
def reasoning_of_earlier_turns_left_out(messages: list[Message]) -> list[Message]:
    """Leave out the reasoning before the last message of the user."""
    user_indexes = [index for index, message in enumerate(messages) if _is_user_message(message)]
    last_user_index = user_indexes[-1] if user_indexes else 0
    earlier_messages = _map_messages(messages[:last_user_index], _remove_reasoning)
    return (
        [*earlier_messages, *messages[last_user_index:]]
        if any(map(_has_reasoning, messages[:last_user_index]))
        else messages
    )


@MESSAGE.register
def reasoning_text_left_out(messages: list[Message]) -> list[Message]:
    """Leave out reasoning fields that are plain text; keep reasoning_details and the content as received."""

    def remove_plain_text(message: Message) -> Message:
        text_fields = [name for name in REASONING_FIELDS if isinstance(message.get(name), str)]
        return {name: value for name, value in message.items() if name not in text_fields} if text_fields else message

    return _map_messages(messages, remove_plain_text)


@MESSAGE.register
def reasoning_in_think_tags(messages: list[Message]) -> list[Message]:
    """Move reasoning into the text, between <think> tags, as some hosts of GLM require."""
    return _map_messages(messages, _move_to_tags)


def _map_messages(messages: list[Message], change_message: Callable[[Message], Message]) -> list[Message]:
    """Apply `change_message` to messages with reasoning; return the same list if none changes."""
    changed_messages = [change_message(message) if _has_reasoning(message) else message for message in messages]
    return (
        changed_messages
        if any(old is not new for old, new in zip(messages, changed_messages, strict=True))
        else messages
    )


def _is_user_message(message: Message) -> bool:
    return message.get("role") == "user" and not isinstance(message, ResultMessage)


def _has_reasoning(message: Message) -> bool:
    """Return whether a message is of the assistant and has a reasoning field or a received thinking block."""
    if message.get("role") != "assistant":
        return False
    return any(name in message for name in REASONING_FIELDS) or any(
        _is_thinking_block(block) for name in KEPT_CONTENT_FIELDS for block in _get_blocks(message, name)
    )


def _remove_reasoning(message: Message) -> Message:
    """Return the message without its reasoning fields and its received thinking blocks."""
    remaining_fields = {name: value for name, value in message.items() if name not in REASONING_FIELDS}
    for name in KEPT_CONTENT_FIELDS:
        if blocks := _get_blocks(remaining_fields, name):
            remaining_fields[name] = [block for block in blocks if not _is_thinking_block(block)]
            if name == KEPT_ITEMS_FIELD and len(remaining_fields[name]) < len(blocks):
                remaining_fields[name] = [
                    _remove_item_id(item) if isinstance(item, dict) else item for item in remaining_fields[name]
                ]
    return remaining_fields


def _remove_item_id(item: JsonObject) -> JsonObject:
    """Return an item without its id, since OpenAI accepts an item with an id only together with its reasoning."""
    return {name: value for name, value in item.items() if name != "id"}


def _move_to_tags(message: Message) -> Message:
    """Return the message with its reasoning in tags before the text.

    Only the first reasoning field with plain text is moved; other reasoning is left out. If the content is neither text
    nor missing, all reasoning is left out.
    """
    reasoning = next(
        (text for name in REASONING_FIELDS if isinstance(text := message.get(name), str) and text.strip()), ""
    )
    content = message.get("content")
    if not reasoning or not (content is None or isinstance(content, str)):
        return _remove_reasoning(message)
    return {**_remove_reasoning(message), "content": f"<think>{reasoning}</think>{content or ''}"}


def _get_blocks(message: Message, name: str) -> list[JsonObject]:
    blocks = message.get(name)
    return blocks if isinstance(blocks, list) else []


def _is_thinking_block(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in THINKING_BLOCK_TYPES
