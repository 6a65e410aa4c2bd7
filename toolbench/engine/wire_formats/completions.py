"""Endpoints that complete a raw prompt: OpenAI's /v1/completions and llama.cpp's /completion.

Their answers are converted to chat format, so that one decoder reads all.
"""

from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.events import AnswerDecoder, Delta, OnDelta
from toolbench.engine.types import JsonObject, TransformChange, Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer, parse_chat_answer, read_object
from toolbench.engine.wire_formats.sse import DONE, Payload
from toolbench.engine.wire_formats.stream_reader import ChatAssembler, StreamDecoder

ToChat = Callable[[JsonObject, str], JsonObject]
_UNSUPPORTED_KEYS = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
_FINISH_REASONS = {"limit": "length", "eos": "stop", "word": "stop"}


class CompletionsFormat:
    """OpenAI's legacy completions, as vLLM, llama.cpp and most hosts have them."""

    name = "completions"
    path = "completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        _check_body(body)
        sent = {key: value for key, value in body.items() if key not in _UNSUPPORTED_KEYS}
        limit = sent.pop("max_completion_tokens", None)
        return ({"max_tokens": limit, **sent} if limit is not None else sent), ()

    def decoder(self, read: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, stream: bool) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        return _build_decoder(read, on_delta, _completion_to_chat, stream=stream)


class LlamaFormat:
    """llama.cpp's own endpoint, whose path begins at the server's root."""

    name = "llama"
    path = "/completion"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        _check_body(body)
        left_out = (*_UNSUPPORTED_KEYS, "stream_options", "max_tokens", "max_completion_tokens")
        sent = {key: value for key, value in body.items() if key not in left_out}
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        return ({**sent, "n_predict": limit} if limit is not None else sent), ()

    def decoder(self, read: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, stream: bool) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        return _build_decoder(read, on_delta, _llama_to_chat, stream=stream)


def _check_body(body: JsonObject) -> None:
    if not isinstance(body.get("prompt"), str):
        raise PlanError("A raw completion takes a rendered prompt: use the method template.")


def _build_decoder(
    read: Callable[[ChatAnswer], Turn], on_delta: OnDelta, to_chat: ToChat, *, stream: bool
) -> AnswerDecoder:
    """Return a decoder of answers that `told(payload, "message" or "delta")` converts to chat format."""

    def whole(body: bytes) -> ChatAnswer:
        return parse_chat_answer(to_chat(read_object(body), "message"))

    return (
        StreamDecoder(read, on_delta, assemble=lambda: _CompletionAssembler(to_chat), whole=whole)
        if stream
        else BodyDecoder(read, whole)
    )


class _CompletionAssembler(ChatAssembler):
    def __init__(self, to_chat: ToChat) -> None:
        super().__init__()
        self._told = to_chat

    def take(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield what a listener gets."""
        if isinstance(event, str):
            yield from super().take(event)
            return
        yield from super().take(self._told(event, "delta"))
        if event.get("stop") is True:  # llama.cpp's last event: nothing more comes
            yield from super().take(DONE)


def _completion_to_chat(payload: JsonObject, kind: str) -> JsonObject:
    """Return the payload with `choices[].text` as a message or delta; all else stays."""
    choices = payload.get("choices")
    if not isinstance(choices, list):
        return payload
    return {**payload, "choices": [_completion_choice_to_chat(choice, kind) for choice in choices]}


def _completion_choice_to_chat(choice: Any, kind: str) -> Any:
    if not isinstance(choice, dict) or "text" not in choice:
        return choice
    rest = {key: value for key, value in choice.items() if key not in ("text", "logprobs")}
    return {**rest, kind: {"role": "assistant", "content": choice["text"]}}


def _llama_to_chat(payload: JsonObject, kind: str) -> JsonObject:
    """Return `content` and token counts in OpenAI's format; an error stays as it is."""
    if "content" not in payload:
        return payload
    chat_payload: JsonObject = {"model": payload.get("model"), "choices": [_build_llama_choice(payload, kind)]}
    if payload.get("stop") is True:
        counts = payload.get("tokens_evaluated"), payload.get("tokens_predicted")
        chat_payload["usage"] = {"tokens_evaluated": counts[0], "tokens_predicted": counts[1]}
    return chat_payload


def _build_llama_choice(payload: JsonObject, kind: str) -> JsonObject:
    message = {"role": "assistant", "content": payload["content"]}
    end = _FINISH_REASONS.get(str(payload.get("stop_type")), "stop") if payload.get("stop") is True else None
    return {"index": 0, kind: message, "finish_reason": end}
