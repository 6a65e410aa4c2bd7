from dataclasses import replace

import pytest

from tests.engine.scripted_model import build_answer, build_plan, run_script
from toolbench.engine.errors import PlanError
from toolbench.engine.types import Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer
from toolbench.engine.wire_formats.registry import CHAT, get_wire_format
from toolbench.engine.wire_formats.stream_reader import StreamDecoder


def test_get_wire_format_refuses_unknown_wire() -> None:
    with pytest.raises(PlanError, match="There is no wire format 'smoke signals'"):
        run_script(replace(build_plan(), wire="smoke signals"), [build_answer()])


def test_chat_format_encodes_body_unchanged() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}], "seed": 3}
    assert get_wire_format("chat") is CHAT
    assert CHAT.encode(body) == (body, ())


def test_chat_format_decodes_complete_and_streamed_answers() -> None:
    decoders = [CHAT.build_decoder(build_turn, lambda delta: None, is_streamed=stream) for stream in (False, True)]
    assert [type(decoder) for decoder in decoders] == [BodyDecoder, StreamDecoder]
    for decoder in decoders:
        decoder.feed(build_answer("Hello."))
        assert decoder.close().text == "Hello."


def build_turn(answer: ChatAnswer) -> Turn:
    return Turn(answer.message, answer.message["content"])
