"""Transforms that leave out reasoning of earlier messages, wholly or partly, or move it into the text."""

from collections.abc import Callable

from toolbench.engine.transforms.messages import MESSAGE
from toolbench.engine.types import JsonObject, Message, ResultMessage
from toolbench.engine.wire_formats.anthropic.blocks import KEPT_BLOCKS_FIELD
from toolbench.engine.wire_formats.content_parts import PARTS_FIELD
from toolbench.engine.wire_formats.responses.items import KEPT_ITEMS_FIELD

__all__ = ["MESSAGE", "REASONING_HISTORY"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
# Types of blocks in Messages, of parts in Mistral's answers and of items in Responses.
THINKING_BLOCK_TYPES = ("thinking", "redacted_thinking", "reasoning")
# Fields of a message with its content as received: blocks of Messages, parts of Mistral's answers, items of Responses.
KEPT_CONTENT_FIELDS = (KEPT_BLOCKS_FIELD, PARTS_FIELD, KEPT_ITEMS_FIELD)

REASONING_HISTORY = {
    "none": "reasoning_left_out",
    "last_turn": "reasoning_of_earlier_turns_left_out",
    "details": "reasoning_text_left_out",
    "tags": "reasoning_in_think_tags",
}
"""The transform by value of the policy key `reasoning_history`; the value `all` needs no transform."""


@MESSAGE.register
def reasoning_left_out(messages: list[Message]) -> list[Message]:
    """Leave earlier reasoning out, for endpoints that refuse unknown fields."""
    return _map_messages(messages, _remove_reasoning)


@MESSAGE.register
def reasoning_of_earlier_turns_left_out(messages: list[Message]) -> list[Message]:
    """Send only the reasoning since the last message of the user."""
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
    """Leave out reasoning that is plain text; send reasoning_details and signed blocks unchanged."""

    def remove_plain_text(message: Message) -> Message:
        text_fields = [name for name in REASONING_FIELDS if isinstance(message.get(name), str)]
        return {name: value for name, value in message.items() if name not in text_fields} if text_fields else message

    return _map_messages(messages, remove_plain_text)


@MESSAGE.register
def reasoning_in_think_tags(messages: list[Message]) -> list[Message]:
    """Send earlier reasoning inside the text, between think tags, as some hosts of GLM require."""
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
    """Return whether an assistant message has a field for reasoning or a received block of thinking."""
    if message.get("role") != "assistant":
        return False
    return any(name in message for name in REASONING_FIELDS) or any(
        _is_thinking_block(block) for name in KEPT_CONTENT_FIELDS for block in _get_blocks(message, name)
    )


def _remove_reasoning(message: Message) -> Message:
    """Return the message without its fields for reasoning and its received blocks of thinking."""
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

    Reasoning that is not plain text is left out, as is all reasoning if the content is a list of parts.
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
