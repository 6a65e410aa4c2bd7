"""Text and calls of a message in OpenAI's format, and excerpts for findings and changes."""

from toolbench.engine.strict_json import get_text, write_json
from toolbench.engine.types import JsonObject, Message

INTERRUPTED_RESULT = "The call was interrupted and has no result."  # sent to the model for a call without a result
MAX_SNIPPET_LENGTH = 200  # characters quoted in a finding or a change


def get_message_text(message: Message) -> str:
    """Return the content as text: a text itself, the joined texts of a list of parts, or "" for anything else."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def add_reasoning(message: Message, reasoning: str) -> Message:
    """Return the message with `reasoning` as last lines of its `reasoning_content`; unchanged for ""."""
    if not reasoning:
        return message
    all_reasoning = "\n".join(filter(None, (get_text(message.get("reasoning_content")), reasoning)))
    return {**message, "reasoning_content": all_reasoning}


def list_structured_calls(message: Message) -> tuple[JsonObject, ...]:
    """Return the objects in `tool_calls`, which may be a list or one object; () for anything else."""
    calls = message.get("tool_calls")
    candidates = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    return tuple(call for call in candidates if isinstance(call, dict))


def build_openai_call(call_id: str, name: str, arguments: object) -> JsonObject:
    """Return a call that was found in text, in OpenAI's format; missing arguments become an empty object."""
    arguments_value = {} if arguments is None else arguments
    arguments_text = arguments_value if isinstance(arguments_value, str) else write_json(arguments_value)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments_text}}


def truncate_snippet(text: str) -> str:
    """Return a trimmed text, truncated with `…` to MAX_SNIPPET_LENGTH characters."""
    text = text.strip()
    return text if len(text) <= MAX_SNIPPET_LENGTH else text[: MAX_SNIPPET_LENGTH - 1] + "…"
