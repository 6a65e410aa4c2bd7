import random
from dataclasses import replace

import pytest

from tests.engine.streams import iter_chunks, render_chunk, render_stream
from toolbench.engine.events import AnswerDecoder, Delta
from toolbench.engine.loop.turn import build_ask
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.methods.streaming_calls import MAX_READS, JsonCallWatcher
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject

CALL = '{"name": "look", "arguments": {"at": "a } \\" {"}}'
ARGUMENTS = '{"at":"a } \\" {"}'
SAID: dict[str, tuple[str, str]] = {
    "text_json": (f'I "look".\n```json\n{CALL}', "\n```"),
    "constrained": (CALL, " "),
    "template": (f"I look.<tool_call>\n{CALL}\n</tool_call>", "\n"),
}


def decoder_of(method: str, heard: list[Delta]) -> AnswerDecoder:
    policy = resolve_policy([("run", {"method": method, "prompt_endpoint": "completions"})]).policy
    tools = ToolRegistry((ToolDefinition("look", "", {"properties": {"at": {"type": "string"}}}),))
    setup = replace(prepare_turns("m", policy, system="", tools=tools, options={}, seed=None), is_streamed=True)
    messages = [{"role": "user", "content": "hi"}]
    return build_ask(setup, 0, messages, has_tools=True, on_delta=heard.append).decoder


def told(method: str, *texts: str, attempts: int = 1) -> list[list[Delta]]:
    """What a listener hears of an answer whose text comes in these pieces, piece by piece, of the last attempt."""
    deltas: list[Delta] = []
    decoder = decoder_of(method, deltas)
    by_piece: list[list[Delta]] = []
    for _ in range(attempts):
        by_piece = []
        for text in texts:
            deltas.clear()
            decoder.feed(render_chunk({"content": text}))
            by_piece.append(list(deltas))
        decoder.feed(render_stream())
        assert [call.name for call in decoder.close().calls] == ["look"]
    return by_piece


@pytest.mark.parametrize("method", SAID)
def test_a_call_in_the_text_is_heard_with_the_piece_that_makes_it_whole(method: str) -> None:
    written, after = SAID[method]
    by_piece = told(method, *written, after, attempts=2)
    calls = [[item for item in piece if item.call_index is not None] for piece in by_piece]
    assert [place for place, found in enumerate(calls) if found] == [len(written) - 1]
    assert calls[len(written) - 1] == [Delta(call_index=0, name="look", arguments=ARGUMENTS, is_closed=True)]
    assert "".join(item.text for piece in by_piece for item in piece) == written + after


@pytest.mark.parametrize("before", ["{} and [1]: ", 'He said "it {is"\n', "As in [1, ", "Open with { or [: "])
def test_json_like_text_before_call_does_not_hide_it_in_any_split(before: str) -> None:
    text = f"{before}```json\n{CALL}\n```"
    for size in (1, 2, 3, 7, 19, len(text) // 2):
        by_piece = told("text_json", *iter_chunks(text, size))
        heard = [place for place, piece in enumerate(by_piece) if any(item.call_index is not None for item in piece)]
        assert heard == [(text.index("\n```", len(before) + 3) - 1) // size], size


@pytest.mark.parametrize("method", ["text_json", "template"])
def test_every_call_of_the_whole_answer_is_heard_in_pieces(method: str) -> None:
    draw = random.Random(7)
    words = ["[1 ", "{ ", '"', "it's ", "\n", "```\n", "```json\n", "{} ", "] ", "}", CALL, CALL, "<tool_call>\n"]
    found = 0
    for _ in range(150):
        text = "".join(draw.choices(words, k=6))
        deltas: list[Delta] = []
        decoder = decoder_of(method, deltas)
        for piece in iter_chunks(text, draw.randint(1, 9)):
            decoder.feed(render_chunk({"content": piece}))
        decoder.feed(render_stream())
        held = [(item.name, item.arguments) for item in decoder.close().calls_found]
        told_of = [(item.name, item.arguments) for item in deltas if item.call_index is not None]
        assert told_of[: len(held)] == held, text
        found += bool(held)
    assert found > 20


def test_only_so_many_ends_are_looked_at() -> None:
    asked: list[str] = []

    def read(text: str) -> tuple[JsonObject, ...]:
        asked.append(text)
        return ()

    watch = JsonCallWatcher(read)
    for _ in range(2 * MAX_READS):
        watch("a {} b")
    assert len(asked) == MAX_READS
