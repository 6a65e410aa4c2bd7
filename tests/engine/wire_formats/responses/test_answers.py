from typing import Any

import pytest

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.strict_json import encode_json
from toolbench.engine.types import Usage
from toolbench.engine.wire_formats.responses.answers import decode_response
from toolbench.engine.wire_formats.responses.items import KEPT_ITEMS_FIELD

TEXT = {"type": "output_text", "text": "Done.", "annotations": []}
SAID = {"type": "message", "role": "assistant", "content": [TEXT]}
CALLED = {"type": "function_call", "call_id": "call_1", "name": "get", "arguments": '{"a":1}'}
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": t} for t in ("One.", "Two.")]}


def build(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"status": "completed", "model": "gpt-5", "output": list(items), **fields}


def decode(*items: Any, **fields: Any) -> Any:
    return decode_response(encode_json(build(*items, **fields)))


def test_items_become_a_chat_message_that_keeps_them() -> None:
    answer = decode(REASONING, SAID, CALLED)
    assert answer.message == {
        "role": "assistant",
        "content": "Done.",
        "reasoning_content": "One.\n\nTwo.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}}],
        KEPT_ITEMS_FIELD: [REASONING, SAID, CALLED],
    }
    assert (answer.finish_reason, answer.model_echoed, answer.findings) == ("tool_calls", "gpt-5", ())


def test_reasoning_text_is_preferred_to_its_summary() -> None:
    item = {**REASONING, "content": [{"type": "reasoning_text", "text": "Whole."}]}
    assert decode(item, SAID).message["reasoning_content"] == "Whole."


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
def test_status_and_reason_become_the_finish_reason(fields: dict[str, Any], finish: str | None) -> None:
    assert decode(SAID, **fields).finish_reason == finish


def test_refusal_is_read_as_content_filter() -> None:
    answer = decode({**SAID, "content": [{"type": "refusal", "refusal": "No."}]})
    assert (answer.message["refusal"], answer.message["content"], answer.finish_reason) == ("No.", "", "content_filter")


def test_usage_has_cached_and_reasoning_tokens() -> None:
    details = {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}
    answer = decode(SAID, usage={"input_tokens": 9, "output_tokens": 3, **details})
    assert answer.usage == Usage(input_tokens=9, output_tokens=3, cached_tokens=4, reasoning_tokens=2)


@pytest.mark.parametrize("item", [{"type": "web_search_call", "id": "ws"}, "text", None, {"content": 3}])
def test_unknown_item_is_kept_with_a_finding(item: Any) -> None:
    answer = decode(item, SAID)
    assert answer.message[KEPT_ITEMS_FIELD] == [item, SAID]
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
def test_what_is_no_answer_is_malformed(root: dict[str, Any], code: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        decode_response(encode_json(root))
    assert caught.value.code == code


@pytest.mark.parametrize("content", [None, 3, [1], [{"type": "output_text"}], [{"type": "output_text", "text": 1}]])
def test_message_item_with_odd_content_has_no_text(content: Any) -> None:
    assert decode({**SAID, "content": content}).message["content"] == ""
