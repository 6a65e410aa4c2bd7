from typing import Any

from tests.engine.wire_formats.responses.sdk_types import parse_request
from toolbench.engine.transforms.reasoning import reasoning_left_out
from toolbench.engine.types import Message
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT
from toolbench.engine.wire_formats.responses.answers import parse_responses_answer
from toolbench.engine.wire_formats.responses.conversation import build_input_items

USER: Message = {"role": "user", "content": "Read it."}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": "completed"}
TEXT = {"type": "output_text", "text": "I read.", "annotations": []}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [TEXT],
    "phase": "x",
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get", "arguments": "{}"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
RESULT: Message = {"role": "tool", "tool_call_id": "call_1", "content": "[1]"}


def convert(*messages: Message) -> tuple[list[dict[str, Any]], list[str]]:
    changes = WireChanges()
    items = build_input_items(list(messages), changes)
    return items, [change.name for change in changes.list_changes()]


def receive(*items: dict[str, Any]) -> Message:
    return parse_responses_answer({"status": "completed", "output": list(items)}).message


def test_build_input_items_sends_received_items_unchanged_with_result() -> None:
    answer = receive(REASONING, SEARCH, MESSAGE, CALL)
    items, changes = convert(USER, answer, RESULT)
    assert items[1:] == [
        REASONING,
        SEARCH,
        MESSAGE,
        CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "[1]"},
    ]
    assert changes == []


def test_build_input_items_replaces_changed_text_and_dropped_call() -> None:
    answer = {**receive(REASONING, MESSAGE, CALL), "content": "Changed.", "tool_calls": []}
    items, _ = convert(USER, answer)
    assert items[1:] == [REASONING, {"type": "message", "role": "assistant", "content": "Changed."}]


def test_build_input_items_drops_reasoning_without_following_item() -> None:
    items, changes = convert(USER, receive(REASONING), USER)
    assert [item["type"] for item in items] == ["message", "message"]
    assert changes == ["reasoning_without_item_left_out"]


def test_build_input_items_removes_ids_of_items_without_reasoning() -> None:
    messages = reasoning_left_out([USER, receive(REASONING, CALL), RESULT])
    items, _ = convert(*messages)
    assert items[1] == {name: value for name, value in CALL.items() if name != "id"}


def test_build_input_items_renders_chat_messages_as_openai_types() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": None}}
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    image_message: Message = {"role": "user", "content": [{"type": "text", "text": "See"}, image]}
    answer: Message = {"role": "assistant", "content": "I read.", "tool_calls": [call], "reasoning": "Hm."}
    items, changes = convert(image_message, answer, RESULT, {"role": "system", "content": "Now stop."})
    body = {"model": "gpt", "input": items}
    assert parse_request(body) == body
    assert [item["type"] for item in items] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert items[2]["arguments"] == "{}"
    assert changes == ["reasoning_without_item_left_out"]


def test_build_input_items_completes_calls_and_results_without_pair() -> None:
    orphan: Message = {"role": "tool", "tool_call_id": "call_9", "content": "late"}
    items, changes = convert(USER, receive(CALL), orphan, USER)
    assert items[2] == {"type": "function_call_output", "call_id": "call_1", "output": INTERRUPTED_RESULT}
    assert items[3]["content"] == "late"
    assert changes == ["orphan_result_as_text", "missing_result_added"]


def test_build_input_items_replaces_repeated_and_blank_ids() -> None:
    items, changes = convert(USER, receive(CALL), RESULT, receive(CALL, {**CALL, "call_id": ""}), RESULT)
    ids = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert len(set(ids)) == 3
    assert [item["call_id"] for item in items if item["type"] == "function_call_output"] == ids
    assert changes == ["call_id_mapped", "call_id_mapped", "missing_result_added"]
