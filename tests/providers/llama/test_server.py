"""Live checks of the local model: what is asserted is form and error classes, never how good or how fast it is."""

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


def again(server: ReadyLine, name: str) -> httpx.Response:
    """Sends a recorded request to the live server."""
    before = read_answer(name)
    return send(server, before.path, before.request)


def test_both_servers_serve_one_canonical_model_and_show_no_path(own: ReadyLine, tools: ReadyLine) -> None:
    for server, name in ((own, "local-own"), (tools, "local-tools")):
        assert (server.name, server.model) == (name, DEFAULT_MODEL_NAME)
        headers = {"Authorization": f"Bearer {server.key}"}
        listed = httpx.get(f"{server.url}/v1/models", headers=headers, trust_env=False)
        assert [model["id"] for model in listed.json()["data"]] == [DEFAULT_MODEL_NAME]
        assert ".gguf" not in listed.text


def test_a_wrong_key_is_refused(tools: ReadyLine) -> None:
    assert send(tools, "/v1/chat/completions", {"messages": []}, key="wrong").status_code == 401


def test_the_models_own_template_drops_the_tools_and_ours_keeps_them(own: ReadyLine, tools: ReadyLine) -> None:
    assert again(own, "template_own").text == read_answer("template_own").body
    assert again(tools, "template_tools").text == read_answer("template_tools").body
    assert "get_weather" in again(tools, "template_tools").json()["prompt"].split("<|im_start|>user")[0]


def test_dropped_tools_give_plain_text_without_a_warning(own: ReadyLine) -> None:
    answer = again(own, "tools_dropped")
    message = answer.json()["choices"][0]["message"]
    assert answer.status_code == 200
    assert message["content"]
    assert "tool_calls" not in message


def test_a_constrained_answer_is_an_object_with_a_name_or_a_final_text(tools: ReadyLine) -> None:
    content = again(tools, "constrained").json()["choices"][0]["message"]["content"]
    assert content.startswith(('{"name":', '{"final":'))


@pytest.mark.parametrize("name", ["bad_history", "context_overflow"])
def test_an_error_has_the_class_it_was_recorded_with(tools: ReadyLine, name: str) -> None:
    before = read_answer(name)
    request = before.request
    if name == "context_overflow":
        request = request | {"messages": [{"role": "user", "content": "Oslo " * 5000}]}
    answer = send(tools, before.path, request)
    assert answer.status_code == before.status
    assert answer.json()["error"]["type"] == before.error_type


def test_sigterm_ends_the_process_cleanly() -> None:
    with run_local_server("--template", "tools", "--name", "second") as (announcement, process):
        assert announcement.name == "second"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
