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
def test_the_text_of_a_message_is_its_text_parts(content: object, text: str) -> None:
    assert get_message_text({"content": content}) == text


@pytest.mark.parametrize(("calls", "found"), [([{"a": 1}, "x", None], 1), ({"a": 1}, 1), ("x", 0), (None, 0)])
def test_only_objects_are_structured_calls(calls: object, found: int) -> None:
    message: JsonObject = {"tool_calls": calls}
    assert len(list_structured_calls(message)) == found


def test_a_snippet_is_bounded() -> None:
    assert truncate_snippet(" a ") == "a"
    assert len(truncate_snippet("x" * 1000)) == MAX_SNIPPET_LENGTH
