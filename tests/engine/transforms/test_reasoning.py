import json

import pytest

from toolbench.engine.events import Ask
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.loop.turn import build_request
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.methods.instructions import build_result_message
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.transforms import apply_message
from toolbench.engine.transforms.reasoning import REASONING_HISTORY
from toolbench.engine.types import JsonObject, ToolCall

ADD_EMPTY_REASONING = "assistant_tool_calls_reasoning_content_empty_if_missing"
CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
WITH_REASONING: JsonObject = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.", "tool_calls": CALLS}
WITH_DETAILS: JsonObject = {
    "role": "assistant",
    "content": None,
    "reasoning": "Hm.",
    "reasoning_details": [{"text": "Hm."}],
}
USER_MESSAGE: JsonObject = {"role": "user", "content": "Go.", "reasoning": "not the assistant's"}


def test_reasoning_left_out_keeps_all_other_fields() -> None:
    messages, changes = apply_message([USER_MESSAGE, WITH_REASONING, WITH_DETAILS], ["reasoning_left_out"])
    assert messages == [
        USER_MESSAGE,
        {"role": "assistant", "content": "Hi.", "tool_calls": CALLS},
        {"role": "assistant", "content": None},
    ]
    assert {change.path for change in changes} == {
        "$[1].reasoning_content",
        "$[2].reasoning",
        "$[2].reasoning_details",
    }


def test_reasoning_in_think_tags_moves_into_the_text() -> None:
    messages, _ = apply_message([WITH_REASONING, WITH_DETAILS], ["reasoning_in_think_tags"])
    assert messages == [
        {"role": "assistant", "content": "<think>Hm.</think>Hi.", "tool_calls": CALLS},
        {"role": "assistant", "content": "<think>Hm.</think>"},
    ]


def test_reasoning_in_think_tags_drops_encrypted_details() -> None:
    sealed: JsonObject = {"role": "assistant", "content": "Hi.", "reasoning_details": [{"data": "x"}]}
    assert apply_message([sealed], ["reasoning_in_think_tags"])[0] == [{"role": "assistant", "content": "Hi."}]


WITH_BLOCKS: JsonObject = {
    "role": "assistant",
    "content": "Hi.",
    "reasoning_content": "Hm.",
    "content_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Hi."}],
}
NEXT_USER_MESSAGE: JsonObject = {"role": "user", "content": "And now?"}
RESULT: JsonObject = build_result_message(ToolCall("a", "f"), "{}")


def render_sent_messages(reasoning_history: str, *messages: JsonObject) -> list[JsonObject]:
    """Return the messages of the request under a policy that sets only `reasoning_history`."""
    policy = resolve_policy([("preset", {"reasoning_history": reasoning_history})]).policy
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(), options={}, seed=None)
    body: JsonObject = json.loads(build_request(setup, 0, messages, has_tools=False).body)
    sent_messages: list[JsonObject] = body["messages"]
    return sent_messages


def test_reasoning_history_all_sends_messages_unchanged() -> None:
    assert render_sent_messages("all", USER_MESSAGE, WITH_REASONING, WITH_DETAILS, WITH_BLOCKS) == [
        USER_MESSAGE,
        WITH_REASONING,
        WITH_DETAILS,
        WITH_BLOCKS,
    ]


def test_reasoning_history_last_turn_sends_reasoning_after_last_user() -> None:
    plain = {"role": "assistant", "content": "Hi.", "tool_calls": CALLS}
    assert render_sent_messages(
        "last_turn", USER_MESSAGE, WITH_REASONING, NEXT_USER_MESSAGE, WITH_REASONING, RESULT, WITH_DETAILS
    ) == [
        *(USER_MESSAGE, plain, NEXT_USER_MESSAGE, WITH_REASONING),
        *(RESULT, WITH_DETAILS),
    ]


def test_user_message_with_text_like_a_result_begins_a_turn() -> None:
    plain = {"role": "assistant", "content": "Hi.", "tool_calls": CALLS}
    assert render_sent_messages("last_turn", USER_MESSAGE, WITH_REASONING, dict(RESULT)) == [
        USER_MESSAGE,
        plain,
        dict(RESULT),
    ]


def test_result_message_from_earlier_run_begins_no_turn() -> None:
    policy = resolve_policy([("preset", {"reasoning_history": "last_turn"})]).policy
    ask = next(
        run_loop(LoopPlan("m", policy, "", "", history=(USER_MESSAGE, WITH_REASONING, RESULT)), lambda event: None)
    )
    assert isinstance(ask, Ask)
    assert json.loads(ask.request.body)["messages"][1]["reasoning_content"] == "Hm."


def test_reasoning_history_details_sends_no_plain_text() -> None:
    details, blocks = render_sent_messages("details", WITH_DETAILS, WITH_BLOCKS)
    assert details == {"role": "assistant", "content": None, "reasoning_details": [{"text": "Hm."}]}
    assert blocks == {name: value for name, value in WITH_BLOCKS.items() if name != "reasoning_content"}


def test_reasoning_history_none_drops_signed_blocks() -> None:
    assert render_sent_messages("none", WITH_BLOCKS) == [
        {"role": "assistant", "content": "Hi.", "content_blocks": [{"type": "text", "text": "Hi."}]}
    ]


def test_reasoning_history_none_keeps_items_that_are_no_objects() -> None:
    items = [{"type": "reasoning", "id": "r"}, 0, {"type": "message", "id": "m"}]
    (sent,), _ = apply_message([{"role": "assistant", "output_items": items}], [REASONING_HISTORY["none"]])
    assert sent["output_items"] == [0, {"type": "message"}]


def test_empty_reasoning_content_is_added_after_reasoning_is_left_out() -> None:
    patch = {"reasoning_history": "none", "message_transforms": [ADD_EMPTY_REASONING]}
    policy = resolve_policy([("preset", patch)]).policy
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(), options={}, seed=None)
    request = build_request(setup, 0, [WITH_REASONING], has_tools=False)
    assert json.loads(request.body)["messages"][0]["reasoning_content"] == ""
    assert [change.name for change in request.changes] == ["reasoning_left_out", ADD_EMPTY_REASONING]


@pytest.mark.parametrize("name", REASONING_HISTORY.values())
def test_reasoning_transforms_keep_messages_without_reasoning(name: str) -> None:
    assert apply_message([USER_MESSAGE], [name]) == ([USER_MESSAGE], ())
