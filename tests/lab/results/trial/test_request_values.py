"""Masking of values that a call copied from its request."""

import json

from toolbench.lab.results.trial.request_values import GIVEN_PLACEHOLDER, RequestValues


def test_request_values_masks_values_of_a_responses_request() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Send order 4711 to Ada."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hamburg"}]},
        {"type": "function_call_output", "call_id": "call_1", "output": "Saved as draft-9."},
    ]
    body = json.dumps({"instructions": "The zone is Europe/Berlin.", "input": items}).encode()
    arguments = {"order": 4711, "name": "Ada", "zone": "Europe/Berlin", "draft": "draft-9", "city": "Hamburg"}
    masked = RequestValues.from_request(body).mask_values(arguments)
    assert masked == {**dict.fromkeys(arguments, GIVEN_PLACEHOLDER), "city": "Hamburg"}


def test_request_values_masks_values_of_a_responses_text() -> None:
    body = json.dumps({"input": "The weather in Berlin?"}).encode()
    assert RequestValues.from_request(body).mask_values("Berlin") == GIVEN_PLACEHOLDER


def test_request_values_of_deeply_nested_json_has_no_values() -> None:
    body = b'{"prompt": "\\"enum\\"", "enum": [' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"]}"
    assert RequestValues.from_request(body) == RequestValues("", frozenset(), frozenset())
