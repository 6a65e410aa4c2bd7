"""Live tests of the local model: they assert form and error classes, never quality or speed."""

import signal
from typing import Any

import httpx
import pytest

from tests.providers.llama.conftest import run_local_server
from tests.providers.local_answers import read_answer
from toolbench.providers.llama.weights import DEFAULT_MODEL_NAME
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model


def send(server: ReadyLine, path: str, body: dict[str, Any], key: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key or server.key}"}
    return httpx.post(server.url + path, json=body, headers=headers, timeout=120, trust_env=False)


def resend(server: ReadyLine, name: str) -> httpx.Response:
    """Send a recorded request to the live server."""
    recorded = read_answer(name)
    return send(server, recorded.path, recorded.request)


def test_local_servers_serve_one_canonical_model_and_show_no_path(
    own_server: ReadyLine, tools_server: ReadyLine
) -> None:
    for server, name in ((own_server, "local-own"), (tools_server, "local-tools")):
        assert (server.name, server.model) == (name, DEFAULT_MODEL_NAME)
        headers = {"Authorization": f"Bearer {server.key}"}
        listed = httpx.get(f"{server.url}/v1/models", headers=headers, trust_env=False)
        assert [model["id"] for model in listed.json()["data"]] == [DEFAULT_MODEL_NAME]
        assert ".gguf" not in listed.text


def test_local_server_refuses_a_wrong_key(tools_server: ReadyLine) -> None:
    assert send(tools_server, "/v1/chat/completions", {"messages": []}, key="wrong").status_code == 401


def test_local_server_template_own_drops_tools_and_tools_keeps_them(
    own_server: ReadyLine, tools_server: ReadyLine
) -> None:
    assert resend(own_server, "template_own").text == read_answer("template_own").body
    assert resend(tools_server, "template_tools").text == read_answer("template_tools").body
    assert "get_weather" in resend(tools_server, "template_tools").json()["prompt"].split("<|im_start|>user")[0]


def test_local_server_with_dropped_tools_answers_in_plain_text(own_server: ReadyLine) -> None:
    answer = resend(own_server, "tools_dropped")
    message = answer.json()["choices"][0]["message"]
    assert answer.status_code == 200
    assert message["content"]
    assert "tool_calls" not in message


def test_local_server_constrained_answer_is_a_call_or_a_final_text(tools_server: ReadyLine) -> None:
    content = resend(tools_server, "constrained").json()["choices"][0]["message"]["content"]
    assert content.startswith(('{"name":', '{"final":'))


@pytest.mark.parametrize("name", ["bad_history", "context_overflow"])
def test_local_server_error_has_its_recorded_type(tools_server: ReadyLine, name: str) -> None:
    recorded = read_answer(name)
    request = recorded.request
    if name == "context_overflow":
        request = request | {"messages": [{"role": "user", "content": "Oslo " * 5000}]}
    answer = send(tools_server, recorded.path, request)
    assert answer.status_code == recorded.status
    assert answer.json()["error"]["type"] == recorded.error_type


def test_local_server_ends_cleanly_on_sigterm() -> None:
    with run_local_server("--template", "tools", "--name", "second") as (ready_line, process):
        assert ready_line.name == "second"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
