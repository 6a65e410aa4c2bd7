from collections.abc import Mapping
from typing import Any

import pytest

from tests.providers.probing.probe_runs import ProbeFindings, probe_personas, run_probe
from toolbench.providers.endpoint import Timeouts
from toolbench.providers.probing.format_detection import (
    MAX_TEXT_CHARS,
    detect_format,
    detect_format_without_tools,
)
from toolbench.providers.probing.prober import ECHO_TOOL
from toolbench.providers.probing.probes import MAX_FIRST_USE_REQUESTS
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
    json_reply,
    text_reply,
    tool_call_reply,
)

NATIVE = {"supports_tool_use": True, "tools_field": "accepted", "tool_choice_values": ("auto",)}
TEXT = {"calls_shape": "list", "arguments_shape": "text"}
IN_TEXT = {"supports_tool_use": False, "tools_field": "accepted"}
EXPECTED: Mapping[str, dict[str, Any]] = {
    "perfect": NATIVE | TEXT,
    "legacy-function-call": NATIVE | {"calls_shape": "function_call", "arguments_shape": "text"},
    "tool-calls-object": NATIVE | {"calls_shape": "object", "arguments_shape": "text"},
    "arguments-object": NATIVE | {"calls_shape": "list", "arguments_shape": "object"},
    "twice-encoded": NATIVE | {"calls_shape": "list", "arguments_shape": "twice_encoded"},
    "padded-names": NATIVE | TEXT,
    "blank-ids": NATIVE | TEXT,
    "tagged-calls": IN_TEXT | {"text_format": "hermes"},
    "fenced-calls": IN_TEXT | {"text_format": "fenced_json"},
    "bare-json-calls": IN_TEXT | {"text_format": "json"},
    "prose-only": IN_TEXT,
    "tools-dropped": {"supports_tool_use": False, "tools_field": "dropped"},
    "no-tool-route": {"supports_tool_use": False, "tools_field": "refused"},
    "empty-for-ever": NATIVE | TEXT,
    "rate-limited": NATIVE | TEXT,
    "key-refused": {},
    "out-of-money": {},
    "down": {},
}


@pytest.fixture(scope="module")
def personas() -> dict[str, ProbeFindings]:
    return probe_personas(EXPECTED)


@pytest.mark.parametrize("persona", EXPECTED)
def test_first_use_probe_finds_the_capabilities_of_a_persona(personas: dict[str, ProbeFindings], persona: str) -> None:
    assert personas[persona].capabilities.get_known_values() == EXPECTED[persona]


@pytest.mark.parametrize("persona", [name for name, values in EXPECTED.items() if not values])
def test_first_use_probe_of_a_failing_endpoint_is_inconclusive(
    personas: dict[str, ProbeFindings], persona: str
) -> None:
    tools = personas[persona].checks["tools"]

    assert (tools.outcome, tools.blocked) == ("unknown", True)
    assert tools.sentence.startswith("Inconclusive: ")


def test_round_trip_check_fails_for_an_empty_final_text(personas: dict[str, ProbeFindings]) -> None:
    assert personas["perfect"].checks["round_trip"].outcome == "passed"
    assert personas["empty-for-ever"].checks["round_trip"].outcome == "failed"


@pytest.mark.parametrize("status", [401, 402, 403, 408, 429, 500, 502, 503, 504, 529])
def test_tools_check_failed_access_or_server_is_inconclusive(status: int) -> None:
    with ScriptedServer(lambda seen: error_reply(status, "tools are a trouble today")) as provider:
        found = run_probe(provider.endpoint())

    assert found.capabilities.get_known_values() == {}
    assert found.checks["tools"].outcome == "unknown"


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedReply(ending=ConnectionEnd.HANG, raw=b""),
        ScriptedReply(ending=ConnectionEnd.RESET, raw=b"HTTP/1.1 200 OK\r\n"),
        ScriptedReply(200, {"content-type": "text/html"}, b"<!doctype html><title>Sign in</title>"),
        json_reply({"error": {"code": 502, "message": "tools are overloaded"}}),
    ],
)
def test_tools_check_silence_garbage_or_error_in_200_is_inconclusive(answer: ScriptedReply) -> None:
    with ScriptedServer(lambda seen: answer) as provider:
        found = run_probe(provider.endpoint(timeouts=Timeouts(connect=5, read=0.2, deadline=5)))

    assert found.capabilities.get_known_values() == {}
    assert found.checks["tools"].blocked


@pytest.mark.parametrize("status", [400, 404, 422])
def test_tools_check_refusal_that_names_tools_is_refused(status: int) -> None:
    with ScriptedServer(lambda seen: error_reply(status, "this model cannot do function calls")) as provider:
        found = run_probe(provider.endpoint())

    assert found.capabilities.get_known_values() == {"supports_tool_use": False, "tools_field": "refused"}


def test_tools_check_refusal_of_something_else_is_inconclusive() -> None:
    with ScriptedServer(lambda seen: error_reply(400, "no such voice")) as provider:
        assert run_probe(provider.endpoint()).capabilities.get_known_values() == {}


def test_tools_check_tries_again_with_tool_choice_required() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        is_required = seen.json().get("tool_choice") == "required"
        usage = {"prompt_tokens": 90 if seen.json().get("tools") else 40, "completion_tokens": 5}
        return (
            tool_call_reply(("probe_echo", {"value": "x"}))
            if is_required
            else chat_reply({"content": "Sure."}, usage=usage)
        )

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint())

    assert found.capabilities.tool_choice_values == ("required",)
    assert found.capabilities.supports_tool_use is True


@pytest.mark.parametrize("name", ["tool_choice", "parallel_tool_calls", "temperature"])
def test_tools_check_refused_parameter_is_no_refusal_of_tools(name: str) -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if name in body:
            return error_reply(
                400, f"Unsupported parameter: '{name}' is not supported with this model (function calling)."
            )
        has_result = body["messages"][-1]["role"] == "tool"
        return (
            text_reply("It gave it back.")
            if has_result or not body.get("tools")
            else tool_call_reply(("probe_echo", {"value": "x"}))
        )

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint())

    assert found.checks["tools"].outcome == ("unknown" if name == "tool_choice" else "passed")
    assert found.capabilities.supports_tool_use is True
    assert found.capabilities.tools_field == "accepted"


@pytest.mark.parametrize("has_call", [True, False])
def test_first_use_probe_of_two_refused_parameters_stays_within_its_limit(has_call: bool) -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if "temperature" in body:
            return error_reply(400, "Unsupported parameter: 'temperature' is not supported with this model.")
        if "max_tokens" in body:
            return error_reply(400, "'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
        if has_call and body["messages"][-1]["role"] != "tool":
            return tool_call_reply(("probe_echo", {"value": "x"}))
        return text_reply("It gave it back.")

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint())

    assert found.checks["tools"].outcome == ("passed" if has_call else "failed")
    assert len(found.exchanges) <= MAX_FIRST_USE_REQUESTS


def test_tools_check_refused_second_request_is_inconclusive() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        if seen.json().get("tool_choice") == "required":
            return error_reply(400, "'required' is no value of tool_choice")
        return chat_reply({"content": "Sure."}, usage={"prompt_tokens": 40, "completion_tokens": 5})

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint())

    assert found.checks["tools"].outcome == "unknown"
    assert found.capabilities.supports_tool_use is None


def test_round_trip_check_fails_for_a_refused_history() -> None:
    with ScriptedServer([tool_call_reply(("probe_echo", {"value": "x"})), error_reply(400, "bad id")]) as provider:
        found = run_probe(provider.endpoint())

    assert found.checks["round_trip"].outcome == "failed"
    assert found.checks["round_trip"].sentence.endswith("bad id")
    assert found.capabilities.supports_tool_use is True


def test_tools_check_uses_max_completion_tokens_if_it_is_required() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        if "max_tokens" in seen.json():
            return error_reply(400, "Use 'max_completion_tokens' instead of 'max_tokens'.")
        return (
            text_reply("Done.") if len(seen.json()["messages"]) > 2 else tool_call_reply(("probe_echo", {"value": "x"}))
        )

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint()).capabilities
    assert (found.supports_tool_use, found.limit_name) == (True, "max_completion_tokens")


@pytest.mark.parametrize(
    ("text", "text_format"),
    [
        ('<tool_call>\n{"name": "probe_echo", "arguments": {"value": "x"}}\n</tool_call>', "hermes"),
        ('{"name": "probe_echo", "arguments": {"value": "x"}}', "json"),
        ('Sure.\n```json\n{"name": "probe_echo", "arguments": {"value": "x"}}\n```', "fenced_json"),
        ("I would call probe_echo with x.", ""),
    ],
)
def test_detect_format_returns_the_text_format_of_a_call(text: str, text_format: str) -> None:
    assert detect_format(text, (ECHO_TOOL.to_openai(),)) == text_format
    assert detect_format_without_tools(text) == text_format


def test_detect_format_uses_the_beginning_of_a_long_text() -> None:
    call = '<tool_call>\n{"name": "probe_echo", "arguments": {"value": "x"}}\n</tool_call>'
    blanks = " " * (MAX_TEXT_CHARS - len(call))
    assert detect_format(blanks + call, (ECHO_TOOL.to_openai(),)) == "hermes"
    assert detect_format(" " * MAX_TEXT_CHARS + call, (ECHO_TOOL.to_openai(),)) == ""
