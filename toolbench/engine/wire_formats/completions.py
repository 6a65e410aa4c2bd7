"""Endpoints that complete a raw prompt: OpenAI's /v1/completions and llama.cpp's /completion.

Their answers are converted to chat format, so that the decoder of chat answers reads them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.events import AnswerDecoder, Delta, OnDelta
from toolbench.engine.types import JsonObject, TransformChange, Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer, parse_chat_answer, read_object
from toolbench.engine.wire_formats.sse import DONE, Payload
from toolbench.engine.wire_formats.stream_reader import ChatAssembler, StreamDecoder

ConvertToChat = Callable[[JsonObject, str], JsonObject]  # see _build_completion_decoder
_UNSUPPORTED_KEYS = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
# Finish reason of a chat answer by the stop_type of llama.cpp.
_FINISH_REASONS = {"limit": "length", "eos": "stop", "word": "stop"}


class CompletionsFormat:
    """Wire format of OpenAI's legacy completions, which vLLM, llama.cpp and most hosts have, too."""

    name = "completions"
    path = "completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        _check_body(body)
        sent_body = {key: value for key, value in body.items() if key not in _UNSUPPORTED_KEYS}
        limit = sent_body.pop("max_completion_tokens", None)
        return ({"max_tokens": limit, **sent_body} if limit is not None else sent_body), ()

    def build_decoder(
        self, read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, is_streamed: bool
    ) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        return _build_completion_decoder(read_answer, on_delta, _convert_completion, is_streamed=is_streamed)


class LlamaFormat:
    """Wire format of llama.cpp's own endpoint, whose path begins at the server's root."""

    name = "llama"
    path = "/completion"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        _check_body(body)
        unsupported_keys = (*_UNSUPPORTED_KEYS, "stream_options", "max_tokens", "max_completion_tokens")
        sent_body = {key: value for key, value in body.items() if key not in unsupported_keys}
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        return ({**sent_body, "n_predict": limit} if limit is not None else sent_body), ()

    def build_decoder(
        self, read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, is_streamed: bool
    ) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        return _build_completion_decoder(read_answer, on_delta, _convert_llama_answer, is_streamed=is_streamed)


def _check_body(body: JsonObject) -> None:
    if not isinstance(body.get("prompt"), str):
        raise PlanError("A raw completion takes a rendered prompt: use the method template.")


def _build_completion_decoder(
    read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, convert_to_chat: ConvertToChat, *, is_streamed: bool
) -> AnswerDecoder:
    """Return a decoder of answers in a completion format.

    Args:
        read_answer: parses the text and calls of the complete answer.
        on_delta: called with each part of a streamed answer.
        convert_to_chat: converts a body or the data of an event to chat format; its second argument is the key of the
            message, "message" for a body and "delta" for an event.
        is_streamed: whether the answer is streamed.
    """

    def decode_body(body: bytes) -> ChatAnswer:
        return parse_chat_answer(convert_to_chat(read_object(body), "message"))

    return (
        StreamDecoder(
            read_answer,
            on_delta,
            build_assembler=lambda: _CompletionAssembler(convert_to_chat),
            decode_body=decode_body,
        )
        if is_streamed
        else BodyDecoder(read_answer, decode_body)
    )


class _CompletionAssembler(ChatAssembler):
    """Assembler of the events of one answer in a completion format."""

    def __init__(self, convert_to_chat: ConvertToChat) -> None:
        super().__init__()
        self._convert_to_chat = convert_to_chat

    def add_event(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield its deltas for the listener."""
        if isinstance(event, str):
            yield from super().add_event(event)
            return
        yield from super().add_event(self._convert_to_chat(event, "delta"))
        if event.get("stop") is True:  # the last event of llama.cpp
            yield from super().add_event(DONE)


def _convert_completion(payload: JsonObject, message_key: str) -> JsonObject:
    """Return the payload with `choices[].text` as a message or delta and without `logprobs` of these choices."""
    choices = payload.get("choices")
    if not isinstance(choices, list):
        return payload
    return {**payload, "choices": [_convert_choice(choice, message_key) for choice in choices]}


def _convert_choice(choice: Any, message_key: str) -> Any:
    if not isinstance(choice, dict) or "text" not in choice:
        return choice
    other_fields = {key: value for key, value in choice.items() if key not in ("text", "logprobs")}
    return {**other_fields, message_key: {"role": "assistant", "content": choice["text"]}}


def _convert_llama_answer(payload: JsonObject, message_key: str) -> JsonObject:
    """Return a payload of llama.cpp in chat format; one without `content`, such as an error, is unchanged.

    The token counts of the last payload are put into `usage` under llama.cpp's names, which `read_usage` knows.
    """
    if "content" not in payload:
        return payload
    chat_payload: JsonObject = {"model": payload.get("model"), "choices": [_build_llama_choice(payload, message_key)]}
    if payload.get("stop") is True:
        token_counts = payload.get("tokens_evaluated"), payload.get("tokens_predicted")
        chat_payload["usage"] = {"tokens_evaluated": token_counts[0], "tokens_predicted": token_counts[1]}
    return chat_payload


def _build_llama_choice(payload: JsonObject, message_key: str) -> JsonObject:
    message = {"role": "assistant", "content": payload["content"]}
    finish_reason = _FINISH_REASONS.get(str(payload.get("stop_type")), "stop") if payload.get("stop") is True else None
    return {"index": 0, message_key: message, "finish_reason": finish_reason}
