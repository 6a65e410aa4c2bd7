import pytest

from toolbench.engine.messages import JsonObject
from toolbench.engine.transforms import apply_message

CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
THOUGHT: JsonObject = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.", "tool_calls": CALLS}
DETAILS: JsonObject = {"role": "assistant", "content": None, "reasoning": "Hm.", "reasoning_details": [{"text": "Hm."}]}
PLAIN: JsonObject = {"role": "user", "content": "Go.", "reasoning": "not the assistant's"}


def test_reasoning_can_be_left_out_and_all_else_stays() -> None:
    messages, changes = apply_message([PLAIN, THOUGHT, DETAILS], ["reasoning_left_out"])
    assert messages == [
        PLAIN,
        {"role": "assistant", "content": "Hi.", "tool_calls": CALLS},
        {"role": "assistant", "content": None},
    ]
    assert {change.path for change in changes} == {
        "$[1].reasoning_content",
        "$[2].reasoning",
        "$[2].reasoning_details",
    }


def test_reasoning_can_go_back_inside_the_text() -> None:
    messages, _ = apply_message([THOUGHT, DETAILS], ["reasoning_in_think_tags"])
    assert messages == [
        {"role": "assistant", "content": "<think>Hm.</think>Hi.", "tool_calls": CALLS},
        {"role": "assistant", "content": "<think>Hm.</think>"},
    ]


def test_reasoning_that_is_no_text_is_left_out_of_the_tags() -> None:
    sealed: JsonObject = {"role": "assistant", "content": "Hi.", "reasoning_details": [{"data": "x"}]}
    assert apply_message([sealed], ["reasoning_in_think_tags"])[0] == [{"role": "assistant", "content": "Hi."}]


@pytest.mark.parametrize("name", ["reasoning_left_out", "reasoning_in_think_tags"])
def test_messages_without_reasoning_are_the_very_same(name: str) -> None:
    assert apply_message([PLAIN], [name]) == ([PLAIN], ())
