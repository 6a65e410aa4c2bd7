from dataclasses import replace

import pytest

from tests.engine.scripted_model import build_answer, build_plan, run_script
from toolbench.engine.errors import PlanError
from toolbench.engine.messages import Turn
from toolbench.engine.wires.answers import Answer, BodyDecoder
from toolbench.engine.wires.streaming import StreamDecoder
from toolbench.engine.wires.wires import CHAT, wire_named


def test_a_wire_nobody_knows_is_refused_before_the_first_request() -> None:
    with pytest.raises(PlanError, match="No wire is called 'smoke signals'"):
        run_script(replace(build_plan(), wire="smoke signals"), [build_answer()])


def test_the_chat_wire_carries_bodies_as_they_are() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}], "seed": 3}
    assert wire_named("chat") is CHAT
    assert CHAT.encode(body) == (body, ())


def test_the_chat_wire_reads_whole_and_streamed_answers() -> None:
    decoders = [CHAT.decoder(read, lambda delta: None, stream=stream) for stream in (False, True)]
    assert [type(decoder) for decoder in decoders] == [BodyDecoder, StreamDecoder]
    for decoder in decoders:
        decoder.feed(build_answer("Hello."))
        assert decoder.close().text == "Hello."


def read(given: Answer) -> Turn:
    return Turn(given.message, given.message["content"])
