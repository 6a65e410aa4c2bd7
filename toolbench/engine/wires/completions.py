"""Endpoints that complete a raw prompt: OpenAI's /v1/completions and llama.cpp's own /completion. Their answers are
told in chat shape, so that one decoder reads them all."""

from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.events import Decoder, Delta, Hear
from toolbench.engine.messages import JsonObject, TransformChange, Turn
from toolbench.engine.wires.answers import Answer, BodyDecoder, answer_in, read_object
from toolbench.engine.wires.sse import DONE, Payload
from toolbench.engine.wires.streaming import Assembly, StreamDecoder

Told = Callable[[JsonObject, str], JsonObject]
_NOT_HERE = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
_ENDS = {"limit": "length", "eos": "stop", "word": "stop"}


class CompletionsWire:
    """OpenAI's legacy completions, as vLLM, llama.cpp and most hosts have them."""

    name = "completions"
    path = "completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        _check(body)
        sent = {key: value for key, value in body.items() if key not in _NOT_HERE}
        limit = sent.pop("max_completion_tokens", None)
        return ({"max_tokens": limit, **sent} if limit is not None else sent), ()

    def decoder(self, read: Callable[[Answer], Turn], heard: Hear, *, stream: bool) -> Decoder:
        return _decoder(read, heard, _from_completions, stream=stream)


class LlamaWire:
    """llama.cpp's own endpoint, beside the OpenAI-compatible ones: a path from the server's root."""

    name = "llama"
    path = "/completion"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        _check(body)
        left_out = (*_NOT_HERE, "stream_options", "max_tokens", "max_completion_tokens")
        sent = {key: value for key, value in body.items() if key not in left_out}
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        return ({**sent, "n_predict": limit} if limit is not None else sent), ()

    def decoder(self, read: Callable[[Answer], Turn], heard: Hear, *, stream: bool) -> Decoder:
        return _decoder(read, heard, _from_llama, stream=stream)


def _check(body: JsonObject) -> None:
    if not isinstance(body.get("prompt"), str):
        raise PlanError("A raw completion takes a rendered prompt: use the method template.")


def _decoder(read: Callable[[Answer], Turn], heard: Hear, told: Told, *, stream: bool) -> Decoder:
    """Reads what a completion endpoint says as `told(payload, "message" or "delta")` tells it in chat shape."""

    def whole(body: bytes) -> Answer:
        return answer_in(told(read_object(body), "message"))

    return StreamDecoder(read, heard, assemble=lambda: _Told(told), whole=whole) if stream else BodyDecoder(read, whole)


class _Told(Assembly):
    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def take(self, event: Payload) -> Iterator[Delta]:
        if isinstance(event, str):
            yield from super().take(event)
            return
        yield from super().take(self._told(event, "delta"))
        if event.get("stop") is True:  # llama.cpp's last event: nothing more comes
            yield from super().take(DONE)


def _from_completions(payload: JsonObject, kind: str) -> JsonObject:
    """`choices[].text` becomes a message or delta; all else stays."""
    choices = payload.get("choices")
    if not isinstance(choices, list):
        return payload
    return {**payload, "choices": [_choice(choice, kind) for choice in choices]}


def _choice(choice: Any, kind: str) -> Any:
    if not isinstance(choice, dict) or "text" not in choice:
        return choice
    rest = {key: value for key, value in choice.items() if key not in ("text", "logprobs")}
    return {**rest, kind: {"role": "assistant", "content": choice["text"]}}


def _from_llama(payload: JsonObject, kind: str) -> JsonObject:
    """`content` and the counts of tokens in OpenAI's shape; an error stays what it is."""
    if "content" not in payload:
        return payload
    told: JsonObject = {"model": payload.get("model"), "choices": [_llama_choice(payload, kind)]}
    if payload.get("stop") is True:
        counts = payload.get("tokens_evaluated"), payload.get("tokens_predicted")
        told["usage"] = {"tokens_evaluated": counts[0], "tokens_predicted": counts[1]}
    return told


def _llama_choice(payload: JsonObject, kind: str) -> JsonObject:
    said = {"role": "assistant", "content": payload["content"]}
    end = _ENDS.get(str(payload.get("stop_type")), "stop") if payload.get("stop") is True else None
    return {"index": 0, kind: said, "finish_reason": end}
