"""Messages and tools of a stored request, in any wire format, for the conversation."""

from dataclasses import dataclass

from toolbench.engine.types import Message
from toolbench.lab.traces.chat_requests import parse_chat_request

MAX_MESSAGES = 60


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Message of a request.

    Attributes:
        role: role in the request, such as system, user, assistant or tool; prompt for a conversation as one text.
        calls: its calls, each as the name and the arguments in one text.
    """

    role: str
    text: str
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentRequest:
    """Messages of a request and names of its tools. Both are empty if the body cannot be read."""

    messages: tuple[SentMessage, ...] = ()
    tools: tuple[str, ...] = ()


def parse_sent_request(body: bytes) -> SentRequest:
    """Parse a request body: its first MAX_MESSAGES messages with a text or calls, and its tools' names."""
    request = parse_chat_request(body)
    messages = (_build_message(message) for message in request.all_messages)
    shown = [message for message in messages if message.text or message.calls]
    return SentRequest(tuple(shown[:MAX_MESSAGES]), tuple(tool["name"] for tool in request.tools))


def _build_message(message: Message) -> SentMessage:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return SentMessage(
        message["role"], message["content"], tuple(f"{call['name']} {call['arguments']}" for call in calls)
    )
