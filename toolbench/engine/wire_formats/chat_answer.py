"""Decoding of bytes into a ChatAnswer; bytes that are not an answer raise MalformedAnswerError."""

from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

from toolbench.engine.errors import InvalidJsonError, MalformedAnswerError
from toolbench.engine.light_dataclass import light
from toolbench.engine.strict_json import get_text, write_json
from toolbench.engine.types import Finding, JsonObject, Message, Turn, Usage
from toolbench.engine.wire_formats.content_parts import split_content_parts
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.unrepresentable_numbers import read_answer_json
from toolbench.engine.wire_formats.usage import find_usage, read_usage

# End of the error message about a chat completion from a provider with another wire format.
CHAT_COMPLETION_HINT = ": it looks like a chat completion, so choose the API OpenAI chat completions for the provider"


@light(frozen=True, slots=True)
class ChatAnswer:
    """One answer in OpenAI's chat format, whatever its wire format, before its calls are parsed.

    Attributes:
        message: the assistant message, with `content` as text. Of several choices only the first is read.
        finish_reason: the reason in OpenAI's terms, or an unknown one as received; None if the answer has none.
        upstream: the upstream provider that a router names; "" for none.
        model_echoed: the model that the answer names; "" for none.
        fingerprint: the `system_fingerprint`; "" for none.
        is_truncated: whether the stream was truncated, so that none of its calls may run.
        is_paused: whether the endpoint wants another request to continue the turn.
    """

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None
    upstream: str = ""
    model_echoed: str = ""
    fingerprint: str = ""
    findings: tuple[Finding, ...] = ()
    is_truncated: bool = False
    is_paused: bool = False


class BodyDecoder:
    """Decoder of an unstreamed answer, which is decoded when all bytes are received.

    Args:
        read_answer: parses the text and calls of the complete answer.
        decode_body: decodes the bytes, and raises only MalformedAnswerError; None for OpenAI's format.
    """

    def __init__(
        self, read_answer: Callable[[ChatAnswer], Turn], decode_body: Callable[[bytes], ChatAnswer] | None = None
    ) -> None:
        self._read_answer = read_answer
        self._decode_body = decode_body or decode_chat_answer
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Collect the next bytes."""
        self._body += chunk

    def close(self) -> Turn:
        """Return the turn; the decoder is then empty and ready for another attempt.

        Raises:
            MalformedAnswerError: the bytes are not an answer.
        """
        body, self._body = bytes(self._body), bytearray()
        return self._read_answer(self._decode_body(body))

    @property
    def partial(self) -> Message:
        """Always {}, since the answer is not read before it is complete."""
        return {}


def decode_chat_answer(body: bytes) -> ChatAnswer:
    """Decode the body of an answer in OpenAI's format.

    Raises:
        MalformedAnswerError: the bytes are not an answer; no other exception is raised.
    """
    return parse_chat_answer(read_object(body))


def parse_chat_answer(root: JsonObject, *, is_truncated: bool = False) -> ChatAnswer:
    """Return the answer in a chat completion object.

    Args:
        root: the JSON object of the body, or one assembled from a stream.
        is_truncated: whether the stream was truncated.

    Raises:
        MalformedAnswerError: the object is not an answer.
    """
    choice = _get_first_choice(root)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedAnswerError("no_message", "the first choice has no message")
    message, findings = _join_content(message)
    usage, usage_findings = read_usage(find_usage(root))
    return ChatAnswer(
        message=message,
        finish_reason=get_text(choice.get("finish_reason")) or None,
        usage=usage,
        upstream=get_text(root.get("provider")),
        model_echoed=get_text(root.get("model")),
        fingerprint=get_text(root.get("system_fingerprint")),
        findings=(*findings, *usage_findings),
        is_truncated=is_truncated,
    )


def read_object(body: bytes) -> JsonObject:
    """Return the JSON object of a body; a byte order mark before it is ignored.

    Raises:
        MalformedAnswerError: the body is not a JSON object in UTF-8.
    """
    try:
        text = body.removeprefix(BOM_UTF8).decode()
        root = read_answer_json(text) if text.strip() else None
    except UnicodeDecodeError as error:
        raise MalformedAnswerError("invalid_utf8", f"the answer is not UTF-8: {error.reason}") from None
    except InvalidJsonError as error:
        raise MalformedAnswerError(error.code, f"the answer is not JSON: {error}") from None
    if not text.strip():
        raise MalformedAnswerError("empty_body", "the answer is empty")
    if not isinstance(root, dict):
        raise MalformedAnswerError("not_object", "the answer is JSON but no object")
    return root


def _get_first_choice(root: JsonObject) -> JsonObject:
    """Return the first choice of an answer.

    Raises:
        MalformedAnswerError: there is no choice, or the choice or the answer has an error.
    """
    choices = root.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for container in (choice, root):
        error = container.get("error") if isinstance(container, dict) else None
        if error:
            raise MalformedAnswerError("error_object", f"the answer contains an error: {get_error_text(error)}")
    if not isinstance(choice, dict):
        raise MalformedAnswerError("no_choices", "the answer has no choices")
    return choice


def get_error_text(error: Any) -> str:
    """Return the first 400 characters of an error's message.

    An object without a message is written as JSON; an error that is no object is the message.
    """
    message = error.get("message") or write_json(error) if isinstance(error, dict) else error
    return str(message)[:400]


def _join_content(message: Message) -> tuple[Message, tuple[Finding, ...]]:
    """Return the message with its content as text, and the findings.

    A content that is neither text nor null gets a finding, unless it is a list of thinking and text parts with at least
    one thinking part.
    """
    message = split_content_parts(message)
    content = message.get("content")
    if content is None or isinstance(content, str):
        return {**message, "content": content or ""}, ()
    finding = Finding(
        "content_not_text",
        f"The content is of the type {type(content).__name__} instead of text.",
        "$.choices[0].message.content",
    )
    return {**message, "content": get_message_text(message)}, (finding,)
