from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.streams import split_at
from toolbench.engine.wire_formats.sse import EventReader, Payload


def read_events(parts: Sequence[bytes]) -> list[Payload]:
    reader = EventReader()
    return [payload for part in parts for payload in reader.feed(part)] + list(reader.close())


def test_event_reader_parses_objects_and_returns_other_data_as_text() -> None:
    lines = [b'data: {"a": [1]}', b"data: [1]", b"data: {oops", b'data: {"a": NaN}', b"data: [DONE]"]
    assert read_events([b"\n\n".join(lines)]) == [{"a": [1]}, "[1]", "{oops", '{"a": NaN}', "[DONE]"]


def test_event_reader_joins_object_on_several_lines() -> None:
    assert read_events([b'data: {"a":\ndata: 1}\n\n']) == [{"a": 1}]


def test_event_reader_ignores_comments_and_other_fields() -> None:
    assert read_events([b": OPENROUTER PROCESSING\n\nevent: x\nid: 1\nretry: 5\ndata: {}\n\n"]) == [{}]


def test_event_reader_ignores_byte_order_mark() -> None:
    assert read_events([b"\xef\xbb\xbfdata: {}\n\n"]) == [{}]


def test_event_reader_returns_unterminated_event_at_close() -> None:
    assert read_events([b"data: {}\n\ndata: [DONE]"]) == [{}, "[DONE]"]


def test_event_reader_returns_lines_that_join_to_no_json_one_by_one() -> None:
    assert read_events([b"data: {oops\ndata: {}\n\n"]) == ["{oops", {}]


def test_event_reader_returns_event_as_soon_as_its_line_ends() -> None:
    reader = EventReader()
    assert list(reader.feed(b'data: {"a": 1}')) == []
    assert list(reader.feed(b"\n")) == [{"a": 1}]


@given(
    st.lists(
        st.sampled_from([b"data: {}", b"data: {", b"data: }", b": c", b"", b"\r", b"\n", b"\r\n", b"data:[DONE]"])
    ),
    st.lists(st.integers(0, 200)),
)
def test_event_reader_is_independent_of_chunk_boundaries(lines: list[bytes], offsets: list[int]) -> None:
    body = b"\n".join(lines)
    assert read_events(split_at(body, offsets)) == read_events([body])
