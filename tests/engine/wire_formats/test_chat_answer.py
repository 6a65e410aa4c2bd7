import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import build_answer
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer, decode_chat_answer, get_error_text

GOOD = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}


def render_body(**more: object) -> bytes:
    return json.dumps({**GOOD, **more}).encode()


def render_message_body(message: object) -> bytes:
    return json.dumps({"choices": [{"message": message}]}).encode()


def test_decode_chat_answer_reads_message_and_metadata() -> None:
    answer = decode_chat_answer(
        render_body(model="m-1", provider="Up", system_fingerprint="fp", usage={"prompt_tokens": 3})
    )
    assert answer.message == {"role": "assistant", "content": "Hi"}
    assert (answer.finish_reason, answer.upstream, answer.model_echoed, answer.fingerprint) == (
        "stop",
        "Up",
        "m-1",
        "fp",
    )
    assert answer.usage is not None
    assert answer.usage.input_tokens == 3


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
def test_decode_chat_answer_content_of_any_type_becomes_text(content: object, text: str) -> None:
    answer = decode_chat_answer(render_message_body({"content": content}))
    assert answer.message["content"] == text
    assert bool(answer.findings) == (content is not None and not isinstance(content, str))


def test_decode_chat_answer_keeps_unknown_fields() -> None:
    answer = decode_chat_answer(render_message_body({"content": "", "reasoning_content": "hm", "x": [1]}))
    assert answer.message == {"content": "", "reasoning_content": "hm", "x": [1]}


@pytest.mark.parametrize(
    ("raw", "code"),
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
def test_decode_chat_answer_other_bytes_raise_error_with_code(raw: bytes, code: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        decode_chat_answer(raw)
    assert caught.value.code == code
    assert str(caught.value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"message": "busy", "code": 503}, "busy"),
        ({"code": 503, "message": None}, '{"code":503,"message":null}'),
        ({"type": "overloaded"}, '{"type":"overloaded"}'),
        ("busy", "busy"),
        ({"detail": "x" * 500}, ('{"detail":"' + "x" * 500)[:400]),
    ],
)
def test_get_error_text_without_message_is_the_error_as_json(error: Any, text: str) -> None:
    assert get_error_text(error) == text


def test_decode_chat_answer_keeps_escaped_nul_and_lone_surrogates() -> None:
    answer = decode_chat_answer(b'{"choices":[{"message":{"content":"a\\u0000\\ud800"}}]}')
    assert answer.message["content"] == "a\x00\ud800"


def test_decode_chat_answer_ignores_byte_order_mark() -> None:
    assert decode_chat_answer(b"\xef\xbb\xbf" + render_body()).message["content"] == "Hi"


def _as_turn(answer: ChatAnswer) -> Turn:
    return Turn(answer.message, answer.message["content"])


def test_body_decoder_accepts_body_in_chunks() -> None:
    decoder = BodyDecoder(_as_turn)
    for start in range(0, len(render_body()), 7):
        decoder.feed(render_body()[start : start + 7])
    assert decoder.close().text == "Hi"


def test_body_decoder_is_reusable_after_close() -> None:
    decoder = BodyDecoder(_as_turn)
    decoder.feed(b"<html>")
    with pytest.raises(MalformedAnswerError):
        decoder.close()
    decoder.feed(render_body())
    assert decoder.close().text == "Hi"


def decode_or_none(raw: bytes) -> ChatAnswer | None:
    """Return the answer, or None if the bytes are malformed; other exceptions fail the test."""
    try:
        return decode_chat_answer(raw)
    except MalformedAnswerError:
        return None


def is_consistent(answer: ChatAnswer) -> bool:
    """Return whether all parts have their types and the message is equal after another round trip."""
    decoded_again = decode_or_none(json.dumps({"choices": [{"message": answer.message}]}).encode())
    texts = (answer.message["content"], answer.upstream, answer.model_echoed, answer.fingerprint)
    return (
        all(isinstance(text, str) for text in texts)
        and (answer.finish_reason is None or bool(answer.finish_reason))
        and decoded_again is not None
        and decoded_again.message == answer.message
    )


@settings(deadline=None, database=None, max_examples=300)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"{" * 5000)
@example(b'{"choices":[{"message":{"content":"\\ud800"}}],"usage":{"cost":1e308}}')
def test_decode_chat_answer_any_bytes_give_answer_or_malformed_error(raw: bytes) -> None:
    answer = decode_or_none(raw)
    assert answer is None or is_consistent(answer)


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
def test_decode_chat_answer_any_json_gives_answer_or_malformed_error(value: object, field: str) -> None:
    message = value if field == "message" else {"content": value if field == "content" else "Hi"}
    choices = value if field == "choices" else [{"message": message, "finish_reason": value}]
    root = {"choices": choices, "usage": value if field == "usage" else None, "model": value}
    answer = decode_or_none(json.dumps(root).encode())
    assert answer is None or is_consistent(answer)
    if field != "choices":
        assert (answer is not None) == isinstance(message, dict)  # other odd fields do not matter


def test_decode_chat_answer_reads_answers_of_the_scripted_model() -> None:
    assert decode_chat_answer(build_answer()).message["content"] == "Done."
