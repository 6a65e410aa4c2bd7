import pytest

from toolbench.engine.messages import JsonObject
from toolbench.engine.wires.reading import SNIPPET, snippet, structured_calls, text_of


@pytest.mark.parametrize(
    ("content", "text"),
    [("a", "a"), (None, ""), (5, ""), ([{"type": "text", "text": "a"}, "x", {"text": None}, {"text": "b"}], "ab")],
)
def test_the_text_of_a_message_is_its_text_parts(content: object, text: str) -> None:
    assert text_of({"content": content}) == text


@pytest.mark.parametrize(("calls", "found"), [([{"a": 1}, "x", None], 1), ({"a": 1}, 1), ("x", 0), (None, 0)])
def test_only_objects_are_structured_calls(calls: object, found: int) -> None:
    message: JsonObject = {"tool_calls": calls}
    assert len(structured_calls(message)) == found


def test_a_snippet_is_bounded() -> None:
    assert snippet(" a ") == "a"
    assert len(snippet("x" * 1000)) == SNIPPET
