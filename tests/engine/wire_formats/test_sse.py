from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.streams import split_at
from toolbench.engine.wire_formats.sse import EventReader, Payload


def events(parts: Sequence[bytes]) -> list[Payload]:
    reader = EventReader()
    return [payload for part in parts for payload in reader.feed(part)] + list(reader.close())


def test_an_object_is_given_read_and_all_else_as_its_text() -> None:
    told = [b'data: {"a": [1]}', b"data: [1]", b"data: {oops", b'data: {"a": NaN}', b"data: [DONE]"]
    assert events([b"\n\n".join(told)]) == [{"a": [1]}, "[1]", "{oops", '{"a": NaN}', "[DONE]"]


def test_an_object_on_several_lines_is_one_event() -> None:
    assert events([b'data: {"a":\ndata: 1}\n\n']) == [{"a": 1}]


def test_comments_and_other_fields_are_passed_over() -> None:
    assert events([b": OPENROUTER PROCESSING\n\nevent: x\nid: 1\nretry: 5\ndata: {}\n\n"]) == [{}]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert events([b"\xef\xbb\xbfdata: {}\n\n"]) == [{}]


def test_what_no_blank_line_ends_is_given_at_the_close() -> None:
    assert events([b"data: {}\n\ndata: [DONE]"]) == [{}, "[DONE]"]


def test_lines_that_make_no_json_together_are_given_one_by_one() -> None:
    assert events([b"data: {oops\ndata: {}\n\n"]) == ["{oops", {}]


def test_an_event_is_given_as_soon_as_its_line_ends() -> None:
    reader = EventReader()
    assert list(reader.feed(b'data: {"a": 1}')) == []
    assert list(reader.feed(b"\n")) == [{"a": 1}]


@given(
    st.lists(
        st.sampled_from([b"data: {}", b"data: {", b"data: }", b": c", b"", b"\r", b"\n", b"\r\n", b"data:[DONE]"])
    ),
    st.lists(st.integers(0, 200)),
)
def test_events_do_not_depend_on_how_the_bytes_are_split(lines: list[bytes], places: list[int]) -> None:
    body = b"\n".join(lines)
    assert events(split_at(body, places)) == events([body])
