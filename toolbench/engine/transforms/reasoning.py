"""Transforms of how earlier reasoning goes back to an endpoint: left out, or inside the text."""

from toolbench.engine.messages import Message
from toolbench.engine.transforms.messages import MESSAGE

__all__ = ["MESSAGE"]

FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")


@MESSAGE.register
def reasoning_left_out(messages: list[Message]) -> list[Message]:
    """Earlier reasoning is not sent back, for endpoints that refuse fields they do not know."""
    changed = [_without(message) if _reasoned(message) else message for message in messages]
    return changed if any(map(_reasoned, messages)) else messages


@MESSAGE.register
def reasoning_in_think_tags(messages: list[Message]) -> list[Message]:
    """Earlier reasoning goes back inside the text, between think tags, as some hosts of GLM want it."""
    changed = [_tagged(message) if _reasoned(message) else message for message in messages]
    return changed if any(map(_reasoned, messages)) else messages


def _reasoned(message: Message) -> bool:
    return message.get("role") == "assistant" and any(name in message for name in FIELDS)


def _without(message: Message) -> Message:
    return {name: value for name, value in message.items() if name not in FIELDS}


def _tagged(message: Message) -> Message:
    """Only reasoning that is text can be told so; any other is left out."""
    thought = next((said for name in FIELDS if isinstance(said := message.get(name), str) and said.strip()), "")
    content = message.get("content")
    if not thought or not (content is None or isinstance(content, str)):
        return _without(message)
    return {**_without(message), "content": f"<think>{thought}</think>{content or ''}"}
