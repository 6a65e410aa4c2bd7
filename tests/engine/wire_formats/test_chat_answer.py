import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import build_answer
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer, decode_chat_answer

GOOD = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}


def body(**more: object) -> bytes:
    return json.dumps({**GOOD, **more}).encode()


def with_message(message: object) -> bytes:
    return json.dumps({"choices": [{"message": message}]}).encode()


def test_an_answer_is_read() -> None:
    read = decode_chat_answer(body(model="m-1", provider="Up", system_fingerprint="fp", usage={"prompt_tokens": 3}))
    assert read.message == {"role": "assistant", "content": "Hi"}
    assert (read.finish_reason, read.upstream, read.model_echoed, read.fingerprint) == ("stop", "Up", "m-1", "fp")
    assert read.usage is not None
    assert read.usage.input_tokens == 3


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("Hi", "Hi"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "ab"),
        ([], ""),
        ([1, None], ""),
        ({"text": "x"}, ""),
        (7, ""),
    ],
)
def test_content_is_always_a_text(content: object, text: str) -> None:
    read = decode_chat_answer(with_message({"content": content}))
    assert read.message["content"] == text
    assert bool(read.findings) == (content is not None and not isinstance(content, str))


def test_fields_nobody_knows_are_kept() -> None:
    read = decode_chat_answer(with_message({"content": "", "reasoning_content": "hm", "x": [1]}))
    assert read.message == {"content": "", "reasoning_content": "hm", "x": [1]}


@pytest.mark.parametrize(
    ("given_bytes", "code"),
    [
        (b"", "empty_body"),
        (b" \n", "empty_body"),
        (b"<html>", "not_json"),
        (b"\x00", "not_json"),
        (b"\xff\xfe{\x00}\x00", "invalid_utf8"),
        (b'{"a": "\xed\xa0\x80"}', "invalid_utf8"),
        (b'{"choices": NaN}', "not_json"),
        (b'{"choices": ' + b"9" * 5000 + b"}", "not_json"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "too_deep"),
        (b"[]", "not_object"),
        (b"null", "not_object"),
        (b"{}", "no_choices"),
        (b'{"choices": []}', "no_choices"),
        (b'{"choices": {}}', "no_choices"),
        (b'{"choices": [7]}', "no_choices"),
        (b'{"choices": [{}]}', "no_message"),
        (b'{"choices": [{"message": "Hi"}]}', "no_message"),
        (b'{"error": {"message": "busy", "code": 503}}', "error_object"),
        (b'{"error": "busy"}', "error_object"),
        (b'{"choices": [{"error": {"message": "cut"}, "message": {"content": ""}}]}', "error_object"),
    ],
)
def test_bytes_that_are_no_answer_are_named(given_bytes: bytes, code: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        decode_chat_answer(given_bytes)
    assert caught.value.code == code
    assert str(caught.value)


def test_nul_and_lone_surrogates_written_as_escapes_are_kept() -> None:
    read = decode_chat_answer(b'{"choices":[{"message":{"content":"a\\u0000\\ud800"}}]}')
    assert read.message["content"] == "a\x00\ud800"


def test_a_byte_order_mark_is_passed_over() -> None:
    assert decode_chat_answer(b"\xef\xbb\xbf" + body()).message["content"] == "Hi"


def _as_turn(read: ChatAnswer) -> Turn:
    return Turn(read.message, read.message["content"])


def test_the_decoder_takes_a_body_in_any_pieces() -> None:
    decoder = BodyDecoder(_as_turn)
    for at in range(0, len(body()), 7):
        decoder.feed(body()[at : at + 7])
    assert decoder.close().text == "Hi"


def test_the_decoder_starts_anew_after_every_close() -> None:
    decoder = BodyDecoder(_as_turn)
    decoder.feed(b"<html>")
    with pytest.raises(MalformedAnswerError):
        decoder.close()
    decoder.feed(body())
    assert decoder.close().text == "Hi"


def decoded(given_bytes: bytes) -> ChatAnswer | None:
    """The answer, None for bytes that are none; anything else that is raised fails the test."""
    try:
        return decode_chat_answer(given_bytes)
    except MalformedAnswerError:
        return None


def is_whole(read: ChatAnswer) -> bool:
    """Every part is of its kind, and the message reads the same when it comes again."""
    again = decoded(json.dumps({"choices": [{"message": read.message}]}).encode())
    texts = (read.message["content"], read.upstream, read.model_echoed, read.fingerprint)
    return (
        all(isinstance(text, str) for text in texts)
        and (read.finish_reason is None or bool(read.finish_reason))
        and again is not None
        and again.message == read.message
    )


@settings(deadline=None, database=None, max_examples=300)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"{" * 5000)
@example(b'{"choices":[{"message":{"content":"\\ud800"}}],"usage":{"cost":1e308}}')
def test_no_bytes_make_the_decoder_raise_anything_else(given_bytes: bytes) -> None:
    read = decoded(given_bytes)
    assert read is None or is_whole(read)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "error", "usage", "cost", "text"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, database=None, max_examples=300)
@given(JSON, st.sampled_from(["choices", "message", "content", "usage"]))
def test_no_json_makes_the_decoder_raise_anything_else(value: object, place: str) -> None:
    message = value if place == "message" else {"content": value if place == "content" else "Hi"}
    choices = value if place == "choices" else [{"message": message, "finish_reason": value}]
    root = {"choices": choices, "usage": value if place == "usage" else None, "model": value}
    read = decoded(json.dumps(root).encode())
    assert read is None or is_whole(read)
    if place != "choices":
        assert (read is not None) == isinstance(message, dict)  # whatever else is odd, a message is an answer


def test_the_scripted_models_answers_are_answers() -> None:
    assert decode_chat_answer(build_answer()).message["content"] == "Done."
