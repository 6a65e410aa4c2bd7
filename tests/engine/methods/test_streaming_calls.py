import random
from dataclasses import replace

import pytest

from tests.engine.streams import iter_chunks, render_chunk, render_stream
from toolbench.engine.events import AnswerDecoder, Delta
from toolbench.engine.loop.turn import build_ask
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.methods.streaming_calls import MAX_SEARCHES, JsonCallWatcher
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject

CALL = '{"name": "look", "arguments": {"at": "a } \\" {"}}'
ARGUMENTS = '{"at":"a } \\" {"}'
TEXTS: dict[str, tuple[str, str]] = {
    "text_json": (f'I "look".\n```json\n{CALL}', "\n```"),
    "constrained": (CALL, " "),
    "template": (f"I look.<tool_call>\n{CALL}\n</tool_call>", "\n"),
}


def build_decoder(method: str, deltas: list[Delta]) -> AnswerDecoder:
    policy = resolve_policy([("run", {"method": method, "prompt_endpoint": "completions"})]).policy
    tools = ToolRegistry((ToolDefinition("look", "", {"properties": {"at": {"type": "string"}}}),))
    setup = replace(prepare_turns("m", policy, system="", tools=tools, options={}, seed=None), is_streamed=True)
    messages = [{"role": "user", "content": "hi"}]
    return build_ask(setup, 0, messages, has_tools=True, on_delta=deltas.append).decoder


def list_deltas_by_chunk(method: str, *texts: str, attempts: int = 1) -> list[list[Delta]]:
    """Return the deltas of the last attempt for each chunk of the answer's text."""
    deltas: list[Delta] = []
    decoder = build_decoder(method, deltas)
    deltas_by_chunk: list[list[Delta]] = []
    for _ in range(attempts):
        deltas_by_chunk = []
        for text in texts:
            deltas.clear()
            decoder.feed(render_chunk({"content": text}))
            deltas_by_chunk.append(list(deltas))
        decoder.feed(render_stream())
        assert [call.name for call in decoder.close().calls] == ["look"]
    return deltas_by_chunk


@pytest.mark.parametrize("method", TEXTS)
def test_call_delta_comes_with_the_chunk_that_completes_the_call(method: str) -> None:
    text, rest = TEXTS[method]
    deltas_by_chunk = list_deltas_by_chunk(method, *text, rest, attempts=2)
    calls = [[item for item in chunk if item.call_index is not None] for chunk in deltas_by_chunk]
    assert [index for index, call_deltas in enumerate(calls) if call_deltas] == [len(text) - 1]
    assert calls[len(text) - 1] == [Delta(call_index=0, name="look", arguments=ARGUMENTS, is_closed=True)]
    assert "".join(item.text for chunk in deltas_by_chunk for item in chunk) == text + rest


@pytest.mark.parametrize("before", ["{} and [1]: ", 'He said "it {is"\n', "As in [1, ", "Open with { or [: "])
def test_json_like_text_before_call_does_not_hide_it_in_any_split(before: str) -> None:
    text = f"{before}```json\n{CALL}\n```"
    for size in (1, 2, 3, 7, 19, len(text) // 2):
        deltas_by_chunk = list_deltas_by_chunk("text_json", *iter_chunks(text, size))
        indexes = [
            index for index, chunk in enumerate(deltas_by_chunk) if any(item.call_index is not None for item in chunk)
        ]
        assert indexes == [(text.index("\n```", len(before) + 3) - 1) // size], size


@pytest.mark.parametrize("method", ["text_json", "template"])
def test_call_deltas_contain_every_call_of_complete_answer(method: str) -> None:
    generator = random.Random(7)
    words = ["[1 ", "{ ", '"', "it's ", "\n", "```\n", "```json\n", "{} ", "] ", "}", CALL, CALL, "<tool_call>\n"]
    answers_with_calls = 0
    for _ in range(150):
        text = "".join(generator.choices(words, k=6))
        deltas: list[Delta] = []
        decoder = build_decoder(method, deltas)
        for chunk in iter_chunks(text, generator.randint(1, 9)):
            decoder.feed(render_chunk({"content": chunk}))
        decoder.feed(render_stream())
        calls_found = [(item.name, item.arguments) for item in decoder.close().calls_found]
        call_deltas = [(item.name, item.arguments) for item in deltas if item.call_index is not None]
        assert call_deltas[: len(calls_found)] == calls_found, text
        answers_with_calls += bool(calls_found)
    assert answers_with_calls > 20


def test_json_call_watcher_searches_max_searches_times_at_most() -> None:
    texts: list[str] = []

    def read(text: str) -> tuple[JsonObject, ...]:
        texts.append(text)
        return ()

    watch = JsonCallWatcher(read)
    for _ in range(2 * MAX_SEARCHES):
        watch("a {} b")
    assert len(texts) == MAX_SEARCHES
