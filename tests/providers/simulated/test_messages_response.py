"""Reasoning in answers of the Messages API."""

import pytest

from toolbench.providers.simulated.messages_response import render_message


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_render_message_has_reasoning_of_either_field(field: str) -> None:
    message = {"role": "assistant", "content": "", field: "Hm."}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    blocks = render_message({"id": "1", "created": 1, "model": "m", "choices": [choice], "usage": usage})["content"]
    assert [(block["type"], block["thinking"]) for block in blocks] == [("thinking", "Hm.")]
