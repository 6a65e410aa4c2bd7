"""What a message says: its text, its calls, and how both are quoted and written."""

from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject, Message

INTERRUPTED_RESULT = "The call was interrupted and has no result."  # what a model is told of a call without one
MAX_SNIPPET_LENGTH = 200  # characters of an answer quoted in a finding


def get_message_text(message: Message) -> str:
    """The content as one text; parts that are no text are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def list_structured_calls(message: Message) -> tuple[JsonObject, ...]:
    """The message's tool_calls as they are: objects of a list, or one lone object; anything else is nothing."""
    calls = message.get("tool_calls")
    found = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    return tuple(call for call in found if isinstance(call, dict))


def build_openai_call(call_id: str, name: str, arguments: object) -> JsonObject:
    """A call found in text, in OpenAI's shape. Missing arguments are an empty object."""
    given = {} if arguments is None else arguments
    text = given if isinstance(given, str) else write_json(given)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def truncate_snippet(text: str) -> str:
    """The beginning of a text, at most 200 characters."""
    text = text.strip()
    return text if len(text) <= MAX_SNIPPET_LENGTH else text[: MAX_SNIPPET_LENGTH - 1] + "…"
