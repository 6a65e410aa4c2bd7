import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.errors import MalformedAnswerError, PlanError
from toolbench.engine.events import Delta
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.completions import CompletionsFormat, LlamaFormat

OPENAI, LLAMA = CompletionsFormat(), LlamaFormat()
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def render_answer(text: str, finish: str = "stop") -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
    return json.dumps({"model": "m", "choices": [choice], "usage": USAGE}).encode()


def render_stream(*texts: str, finish: str | None = "stop", done: bool = True) -> bytes:
    choices: list[JsonObject] = [{"index": 0, "text": text, "finish_reason": None} for text in texts]
    choices += [{"index": 0, "text": "", "finish_reason": finish}] if finish else []
    events: list[JsonObject] = [{"model": "m", "choices": [choice]} for choice in choices]
    lines = [json.dumps(event) for event in (*events, {"model": "m", "choices": [], "usage": USAGE})]
    return "".join(f"data: {line}\n\n" for line in (*lines, *(["[DONE]"] if done else []))).encode()


def build_llama_answer(text: str, stop_type: str = "eos") -> JsonObject:
    return {"content": text, "stop": True, "stop_type": stop_type, "tokens_predicted": 2, "tokens_evaluated": 10}


def decode(body: bytes, wire: Any = OPENAI, *, stream: bool = False, size: int = 0) -> tuple[ChatAnswer, list[Delta]]:
    """Return the chat answer and its deltas; the body is fed in chunks of `size` bytes, or at once if 0."""
    answers: list[ChatAnswer] = []
    deltas: list[Delta] = []

    def keep(answer: ChatAnswer) -> Turn:
        answers.append(answer)
        return Turn(answer.message, str(answer.message["content"]))

    decoder = wire.build_decoder(keep, deltas.append, is_streamed=stream)
    for start in range(0, len(body), size or len(body)):
        decoder.feed(body[start : start + (size or len(body))])
    decoder.close()
    return answers[0], deltas


def test_completions_decoder_returns_chat_message() -> None:
    answer, _ = decode(render_answer("Hello.", "length"))
    assert answer.message == {"role": "assistant", "content": "Hello."}
    assert (answer.finish_reason, answer.model_echoed) == ("length", "m")
    assert answer.usage is not None
    assert answer.usage.output_tokens == 2


@given(st.text(min_size=1), st.integers(1, 40), st.integers(1, 5))
def test_completions_stream_in_any_chunks_equals_complete_answer(text: str, size: int, length: int) -> None:
    texts = [text[start : start + length] for start in range(0, len(text), length)]
    answer, deltas = decode(render_stream(*texts), stream=True, size=size)
    expected, _ = decode(render_answer(text))
    assert (answer.message, answer.finish_reason, answer.usage) == (
        expected.message,
        expected.finish_reason,
        expected.usage,
    )
    assert "".join(delta.text for delta in deltas) == text


def test_completions_stream_without_end_is_unfinished() -> None:
    answer, _ = decode(render_stream("Hel", "lo.", finish=None, done=False), stream=True)
    assert "stream_unfinished" in [finding.code for finding in answer.findings]


def test_completions_decoder_reads_unstreamed_body_with_finding() -> None:
    answer, _ = decode(render_answer("Hello."), stream=True)
    assert answer.message["content"] == "Hello."
    assert [finding.code for finding in answer.findings] == ["stream_not_streamed"]


@pytest.mark.parametrize("wire", [OPENAI, LLAMA])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": {"message": "no"}}', b'data: {"error": "no"}\n\n'])
def test_completions_decoder_refuses_other_bytes(wire: Any, body: bytes) -> None:
    for stream in (False, True):
        with pytest.raises(MalformedAnswerError):
            decode(body or b" ", wire, stream=stream)


@pytest.mark.parametrize(("stop_type", "finish"), [("eos", "stop"), ("word", "stop"), ("limit", "length")])
def test_llama_answer_becomes_chat_message(stop_type: str, finish: str) -> None:
    answer, _ = decode(json.dumps(build_llama_answer("Hi", stop_type)).encode(), LLAMA)
    assert (answer.message["content"], answer.finish_reason) == ("Hi", finish)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 2)


def test_llama_stream_ends_with_its_last_event() -> None:
    events = [{"content": "He", "stop": False}, {"content": "llo", "stop": False}, build_llama_answer("")]
    answer, deltas = decode("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode(), LLAMA, stream=True)
    assert (answer.message["content"], answer.finish_reason, answer.findings) == ("Hello", "stop", ())
    assert [delta.text for delta in deltas] == ["He", "llo"]


def test_encode_prompt_drops_chat_parameters_and_renames_limit() -> None:
    body = {"model": "m", "prompt": "Hi", "stop": ["x"], "parallel_tool_calls": False, "max_completion_tokens": 9}
    assert OPENAI.encode(body)[0] == {"model": "m", "prompt": "Hi", "stop": ["x"], "max_tokens": 9}
    assert LLAMA.encode({**body, "stream": True, "stream_options": {}})[0] == {
        "model": "m",
        "prompt": "Hi",
        "stop": ["x"],
        "stream": True,
        "n_predict": 9,
    }


@pytest.mark.parametrize("wire", [OPENAI, LLAMA])
def test_encode_refuses_messages(wire: Any) -> None:
    with pytest.raises(PlanError, match="use the method template"):
        wire.encode({"model": "m", "messages": []})
