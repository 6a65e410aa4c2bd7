"""Bytes of an answer to its message. Whatever the bytes are, the outcome is an Answer or MalformedAnswerError."""

from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

from toolbench.engine.errors import InvalidJsonError, MalformedAnswerError
from toolbench.engine.light_dataclass import light
from toolbench.engine.strict_json import get_text
from toolbench.engine.types import Finding, JsonObject, Message, Turn, Usage
from toolbench.engine.wire_formats.content_parts import split_content_parts
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.unrepresentable_numbers import read_answer_json
from toolbench.engine.wire_formats.usage import find_usage, read_usage


@light(frozen=True, slots=True)
class ChatAnswer:
    """One answer as it came. `message` is the first choice's, with `content` a text: parts of text are joined. `cut`
    says that a stream broke off: none of its calls may run; `continues`, that the endpoint wants to be asked to go
    on."""

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None
    upstream: str = ""
    model_echoed: str = ""
    fingerprint: str = ""
    findings: tuple[Finding, ...] = ()
    cut: bool = False
    continues: bool = False


class BodyDecoder:
    """The decoder of an answer that comes in one piece: collects it and hands it to `read` when it is complete.
    `decode` reads the bytes; it raises MalformedAnswerError, and nothing else, for any that are no answer."""

    def __init__(self, read: Callable[[ChatAnswer], Turn], decode: Callable[[bytes], ChatAnswer] | None = None) -> None:
        self._read = read
        self._decode = decode or decode_chat_answer
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._body += chunk

    def close(self) -> Turn:
        """Raises MalformedAnswerError when the bytes are no answer. Either way the decoder is empty again, ready for
        another attempt."""
        body, self._body = bytes(self._body), bytearray()
        return self._read(self._decode(body))

    @property
    def partial(self) -> Message:
        """Nothing: an answer in one piece is not read before it is whole."""
        return {}


def decode_chat_answer(body: bytes) -> ChatAnswer:
    """Reads an OpenAI-shaped answer. Raises MalformedAnswerError, and nothing else, for any bytes that are none."""
    return parse_chat_answer(read_object(body))


def parse_chat_answer(root: JsonObject, *, cut: bool = False) -> ChatAnswer:
    """The answer that an OpenAI-shaped object holds. Raises MalformedAnswerError."""
    choice = _get_first_choice(root)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedAnswerError("no_message", "the first choice has no message")
    message, findings = _join_content(message)
    usage, implausible = read_usage(find_usage(root))
    return ChatAnswer(
        message=message,
        finish_reason=get_text(choice.get("finish_reason")) or None,
        usage=usage,
        upstream=get_text(root.get("provider")),
        model_echoed=get_text(root.get("model")),
        fingerprint=get_text(root.get("system_fingerprint")),
        findings=(*findings, *implausible),
        cut=cut,
    )


def read_object(body: bytes) -> JsonObject:
    """The JSON object that a body is. Raises MalformedAnswerError."""
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
    choices = root.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (choice, root):
        error = holder.get("error") if isinstance(holder, dict) else None
        if error:
            raise MalformedAnswerError("error_object", f"the answer holds an error: {get_error_text(error)}")
    if not isinstance(choice, dict):
        raise MalformedAnswerError("no_choices", "the answer has no choices")
    return choice


def get_error_text(error: Any) -> str:
    """The beginning of what an error object says."""
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:400]


def _join_content(message: Message) -> tuple[Message, tuple[Finding, ...]]:
    message = split_content_parts(message)
    content = message.get("content")
    if content is None or isinstance(content, str):
        return {**message, "content": content or ""}, ()
    finding = Finding("content_not_text", f"content came as {type(content).__name__}", "$.choices[0].message.content")
    return {**message, "content": get_message_text(message)}, (finding,)
