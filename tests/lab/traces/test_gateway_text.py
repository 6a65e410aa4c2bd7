"""Search text of a gateway trace: names, question, answer, arguments and error, in every dialect."""

import json
from typing import Any

import pytest

from toolbench.lab.models import GatewayTrace
from toolbench.lab.traces.gateway_text import MAX_ARGUMENT_CHARS, build_trace_text, build_trace_texts
from toolbench.lab.traces.trial_text import MAX_TEXT_CHARS

QUESTION, ANSWER = "What is the weather in Zürich?", "Let me look."
ARGUMENTS = '{"city": "Zürich"}'
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
CHAT_ANSWER = {"choices": [{"message": {"role": "assistant", "content": ANSWER, "tool_calls": [CALL]}}]}
CHAT_REQUEST = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]}
ITEMS = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": ARGUMENTS},
]


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def build_trace(**fields: Any) -> GatewayTrace:
    names = {"alias": "weather", "served_by": "weather", "model_name": "vendor/m", "token_name": "ci"}
    return GatewayTrace(**{**names, "dialect": "chat", "status": 200, **fields})


@pytest.mark.parametrize(
    "bodies",
    [
        {"client_request": encode(CHAT_REQUEST), "client_response": encode(CHAT_ANSWER)},
        {"client_request": encode({"input": QUESTION}), "client_response": encode({"output": ITEMS})},
        {
            "client_request": b"{}",
            "client_response": b"data: {}",
            "traffic_line": encode({"request": CHAT_REQUEST, "response": CHAT_ANSWER}),
        },
    ],
    ids=["chat", "responses", "traffic line"],
)
def test_build_trace_text_has_names_question_answer_and_calls(bodies: dict[str, bytes]) -> None:
    trace = build_trace(changes=["json_repaired"], **bodies)
    assert build_trace_text(trace).splitlines() == [
        "weather vendor/m chat ci 200 json_repaired",
        QUESTION,
        f"{ANSWER} " if "output" in str(bodies["client_response"]) else ANSWER,
        f"get_weather {ARGUMENTS}",
    ]


def test_build_trace_text_of_failed_request_has_error_and_fallback() -> None:
    trace = build_trace(served_by="spare", status=502, code="invalid_tool_call", sentence="The call is not valid.")
    trace.client_request = encode({"messages": [{"role": "user", "content": QUESTION}]})
    assert build_trace_text(trace).splitlines() == [
        "weather spare vendor/m chat ci 502 invalid_tool_call",
        QUESTION,
        "The call is not valid.",
    ]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"messages": [3, null]}', b'{"output": 3}']
)
def test_build_trace_text_of_unreadable_bodies_has_names_only(body: bytes) -> None:
    trace = build_trace(client_request=body, client_response=body)
    assert build_trace_text(trace) == "weather vendor/m chat ci 200"


def test_build_trace_text_is_bounded_and_fits_its_column() -> None:
    call = {"function": {"name": "save", "arguments": "\ud800\x00" + "x" * 100_000}}
    answer = {"choices": [{"message": {"content": "y" * 100_000, "tool_calls": [call] * 50}}]}
    text = build_trace_text(build_trace(client_response=encode(answer)))
    assert len(text) == MAX_TEXT_CHARS
    assert "\x00" not in text
    assert max(map(len, text.splitlines()[2:])) <= MAX_ARGUMENT_CHARS + len("save ")


@pytest.mark.django_db
def test_build_trace_texts_of_unknown_traces_is_empty() -> None:
    assert build_trace_texts([1, 2, 3]) == {}
