import pytest

from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.parse_answer import (
    MAX_SNIPPET_LENGTH,
    get_message_text,
    list_structured_calls,
    truncate_snippet,
)


@pytest.mark.parametrize(
    ("content", "text"),
    [("a", "a"), (None, ""), (5, ""), ([{"type": "text", "text": "a"}, "x", {"text": None}, {"text": "b"}], "ab")],
)
def test_get_message_text_joins_text_parts(content: object, text: str) -> None:
    assert get_message_text({"content": content}) == text


@pytest.mark.parametrize(("calls", "count"), [([{"a": 1}, "x", None], 1), ({"a": 1}, 1), ("x", 0), (None, 0)])
def test_list_structured_calls_contains_only_objects(calls: object, count: int) -> None:
    message: JsonObject = {"tool_calls": calls}
    assert len(list_structured_calls(message)) == count


def test_truncate_snippet_strips_and_limits_text() -> None:
    assert truncate_snippet(" a ") == "a"
    assert len(truncate_snippet("x" * 1000)) == MAX_SNIPPET_LENGTH
