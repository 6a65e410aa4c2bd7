"""Bytes of an answer to its message. Whatever the bytes are, the outcome is an Answer or MalformedAnswer."""

from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

from toolbench.engine.errors import BadJson, MalformedAnswer
from toolbench.engine.json_text import string_in
from toolbench.engine.messages import Finding, JsonObject, Message, Turn, Usage
from toolbench.engine.values import light
from toolbench.engine.wires.odd_numbers import read_answer_json
from toolbench.engine.wires.parts import apart
from toolbench.engine.wires.reading import text_of
from toolbench.engine.wires.usage import read_usage, usage_in


@light(frozen=True, slots=True)
class Answer:
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
    `decode` reads the bytes; it raises MalformedAnswer, and nothing else, for any that are no answer."""

    def __init__(self, read: Callable[[Answer], Turn], decode: Callable[[bytes], Answer] | None = None) -> None:
        self._read = read
        self._decode = decode or decode_answer
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._body += chunk

    def close(self) -> Turn:
        """Raises MalformedAnswer when the bytes are no answer. Either way the decoder is empty again, ready for
        another attempt."""
        body, self._body = bytes(self._body), bytearray()
        return self._read(self._decode(body))

    @property
    def partial(self) -> Message:
        """Nothing: an answer in one piece is not read before it is whole."""
        return {}


def decode_answer(body: bytes) -> Answer:
    """Reads an OpenAI-shaped answer. Raises MalformedAnswer, and nothing else, for any bytes that are none."""
    return answer_in(read_object(body))


def answer_in(root: JsonObject, *, cut: bool = False) -> Answer:
    """The answer that an OpenAI-shaped object holds. Raises MalformedAnswer."""
    choice = _first_choice(root)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedAnswer("no_message", "the first choice has no message")
    message, findings = _with_text(message)
    usage, implausible = read_usage(usage_in(root))
    return Answer(
        message=message,
        finish_reason=string_in(choice.get("finish_reason")) or None,
        usage=usage,
        upstream=string_in(root.get("provider")),
        model_echoed=string_in(root.get("model")),
        fingerprint=string_in(root.get("system_fingerprint")),
        findings=(*findings, *implausible),
        cut=cut,
    )


def read_object(body: bytes) -> JsonObject:
    """The JSON object that a body is. Raises MalformedAnswer."""
    try:
        text = body.removeprefix(BOM_UTF8).decode()
        root = read_answer_json(text) if text.strip() else None
    except UnicodeDecodeError as error:
        raise MalformedAnswer("invalid_utf8", f"the answer is not UTF-8: {error.reason}") from None
    except BadJson as error:
        raise MalformedAnswer(error.code, f"the answer is not JSON: {error}") from None
    if not text.strip():
        raise MalformedAnswer("empty_body", "the answer is empty")
    if not isinstance(root, dict):
        raise MalformedAnswer("not_object", "the answer is JSON but no object")
    return root


def _first_choice(root: JsonObject) -> JsonObject:
    choices = root.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (choice, root):
        error = holder.get("error") if isinstance(holder, dict) else None
        if error:
            raise MalformedAnswer("error_object", f"the answer holds an error: {error_text(error)}")
    if not isinstance(choice, dict):
        raise MalformedAnswer("no_choices", "the answer has no choices")
    return choice


def error_text(error: Any) -> str:
    """The beginning of what an error object says."""
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:400]


def _with_text(message: Message) -> tuple[Message, tuple[Finding, ...]]:
    message = apart(message)
    content = message.get("content")
    if content is None or isinstance(content, str):
        return {**message, "content": content or ""}, ()
    finding = Finding("content_not_text", f"content came as {type(content).__name__}", "$.choices[0].message.content")
    return {**message, "content": text_of(message)}, (finding,)
