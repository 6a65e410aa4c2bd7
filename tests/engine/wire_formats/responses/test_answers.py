from typing import Any

import pytest

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.strict_json import encode_json
from toolbench.engine.types import Usage
from toolbench.engine.wire_formats.responses.answers import decode_response
from toolbench.engine.wire_formats.responses.items import KEPT_ITEMS_FIELD

TEXT = {"type": "output_text", "text": "Done.", "annotations": []}
MESSAGE = {"type": "message", "role": "assistant", "content": [TEXT]}
CALL = {"type": "function_call", "call_id": "call_1", "name": "get", "arguments": '{"a":1}'}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": t} for t in ("One.", "Two.")]}


def build(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"status": "completed", "model": "gpt-5", "output": list(items), **fields}


def decode(*items: Any, **fields: Any) -> Any:
    return decode_response(encode_json(build(*items, **fields)))


def test_decode_response_builds_chat_message_and_keeps_items() -> None:
    answer = decode(REASONING, MESSAGE, CALL)
    assert answer.message == {
        "role": "assistant",
        "content": "Done.",
        "reasoning_content": "One.\n\nTwo.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}}],
        KEPT_ITEMS_FIELD: [REASONING, MESSAGE, CALL],
    }
    assert (answer.finish_reason, answer.model_echoed, answer.findings) == ("tool_calls", "gpt-5", ())


def test_decode_response_prefers_reasoning_text_to_its_summary() -> None:
    item = {**REASONING, "content": [{"type": "reasoning_text", "text": "Whole."}]}
    assert decode(item, MESSAGE).message["reasoning_content"] == "Whole."


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "new_reason"}}, "new_reason"),
        ({"status": "incomplete"}, "incomplete"),
        ({"status": "queued"}, "queued"),
        ({"status": None}, None),
    ],
)
def test_decode_response_maps_status_and_reason_to_finish_reason(fields: dict[str, Any], finish: str | None) -> None:
    assert decode(MESSAGE, **fields).finish_reason == finish


def test_decode_response_reads_refusal_as_content_filter() -> None:
    answer = decode({**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]})
    assert (answer.message["refusal"], answer.message["content"], answer.finish_reason) == ("No.", "", "content_filter")


def test_decode_response_usage_has_cached_and_reasoning_tokens() -> None:
    details = {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}
    answer = decode(MESSAGE, usage={"input_tokens": 9, "output_tokens": 3, **details})
    assert answer.usage == Usage(input_tokens=9, output_tokens=3, cached_tokens=4, reasoning_tokens=2)


@pytest.mark.parametrize("item", [{"type": "web_search_call", "id": "ws"}, "text", None, {"content": 3}])
def test_decode_response_keeps_unknown_item_with_a_finding(item: Any) -> None:
    answer = decode(item, MESSAGE)
    assert answer.message[KEPT_ITEMS_FIELD] == [item, MESSAGE]
    assert [finding.code for finding in answer.findings] == ["item_not_read"]


@pytest.mark.parametrize(
    ("root", "code"),
    [
        (build(error={"code": "server_error", "message": "Down"}), "error_object"),
        (build(status="failed"), "error_object"),
        ({"choices": []}, "no_message"),
        ({"content": []}, "no_message"),
        ({"output": "text"}, "no_message"),
    ],
)
def test_decode_response_refuses_other_bodies(root: dict[str, Any], code: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        decode_response(encode_json(root))
    assert caught.value.code == code


@pytest.mark.parametrize("content", [None, 3, [1], [{"type": "output_text"}], [{"type": "output_text", "text": 1}]])
def test_decode_response_message_with_other_content_has_no_text(content: Any) -> None:
    assert decode({**MESSAGE, "content": content}).message["content"] == ""
