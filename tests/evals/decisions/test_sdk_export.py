"""Tests that exported settings fit the types of the SDKs and that the exported snippets run."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from anthropic.types.message_create_params import MessageCreateParamsBase
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import TypeAdapter

from toolbench.engine.policy.presets import build_layers
from toolbench.engine.tools.python_functions import PythonTools, python_tool
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.decisions.sdk_export import (
    FORMAT_BY_FILE,
    ExportedSettings,
    build_chat_settings,
    build_sdk_keywords,
    build_wire_settings,
    render_anthropic,
    render_json,
    render_litellm,
    render_openai,
    render_toolbench,
)
from toolbench.providers.driver.converse import build_run_context, converse
from toolbench.providers.http.client import HttpClient
from toolbench.providers.scripted_server import ScriptedServer, json_reply, text_reply, tool_call_reply

PROFILE: JsonObject = {"llm_options_defaults": {"temperature": 0.7, "top_k": 20, "min_p": 0.0, "max_tokens": 500}}
BASE: JsonObject = {"request_overrides": {"parallel_tool_calls": False}, "tool_use_mode": "enforced", "max_turns": 4}
TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


def build_exported(base_url: str = "https://example.test/api", **fields: Any) -> ExportedSettings:
    layers = (("infrastructure", BASE), ("profile", PROFILE))
    named = {"name": "A model", "model": "vendor/model-a", "api_prefix": "/v1", "key_env": "EXAMPLE_KEY"}
    return ExportedSettings(
        **(named | {"base_url": base_url, "wire": "chat", "layers": layers, "policy_hash": "4be1"} | fields)
    )


def run_snippet(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(text, "settings", "exec"), namespace)
    return namespace


def test_sdk_parameters_table_lists_the_parameters_of_the_sdks() -> None:
    known = read_table("sdk_parameters")
    assert set(known["openai"]) == {*CompletionCreateParamsBase.__annotations__, "stream"}
    assert set(known["anthropic"]) == {*MessageCreateParamsBase.__annotations__, "stream"}
    assert set(known["responses"]) == {*ResponseCreateParamsBase.__annotations__, "stream"}


def test_render_openai_of_responses_provider_sends_to_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", "sk-test")
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    answer = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
    with ScriptedServer([json_reply(answer)]) as provider:
        namespace = run_snippet(render_openai(build_exported(provider.base_url, wire="responses")))
        assert namespace["create"]("Hello", [tool]).status == "completed"
        (seen,) = provider.seen
    assert seen.path.endswith("/responses")
    sent = seen.json()
    assert (sent["input"], sent["max_output_tokens"], sent["store"], sent["top_k"]) == ("Hello", 500, False, 20)


def test_build_sdk_keywords_openai_moves_others_to_extra_body() -> None:
    keywords = build_sdk_keywords("openai", build_chat_settings(build_exported()))
    extra = keywords.pop("extra_body")
    assert extra == {"min_p": 0.0, "top_k": 20}
    whole = keywords | {"messages": [{"role": "user", "content": "Hello"}], "tools": [TOOL]}
    TypeAdapter(CompletionCreateParamsBase).validate_python(whole)
    assert (keywords["temperature"], keywords["parallel_tool_calls"], keywords["tool_choice"]) == (0.7, False, "auto")


def test_build_sdk_keywords_anthropic_fits_its_types() -> None:
    keywords = build_sdk_keywords("anthropic", build_wire_settings(build_exported(wire="anthropic"), "anthropic")[0])
    extra = keywords.pop("extra_body")
    assert extra == {"temperature": 0.7, "top_k": 20}
    TypeAdapter(MessageCreateParamsBase).validate_python(
        keywords | {"messages": [{"role": "user", "content": "Hello"}]}
    )
    assert keywords["max_tokens"] == 500
    assert keywords["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert run_snippet(render_anthropic(build_exported(wire="anthropic")))["SETTINGS"] == keywords | {
        "extra_body": extra
    }


def test_render_openai_and_anthropic_say_if_the_provider_has_the_other_api() -> None:
    for render, wire, other in ((render_openai, "anthropic", "chat"), (render_anthropic, "chat", "anthropic")):
        assert "use this code with one that serves" in render(build_exported(wire=wire))
        assert "use this code with one that serves" not in render(build_exported(wire=other))


def test_render_openai_snippet_sends_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", "sk-test")
    with ScriptedServer([text_reply("Done.")]) as provider:
        namespace = run_snippet(render_openai(build_exported(provider.base_url)))
        with namespace["client"]() as client:
            answer = client.chat.completions.create(
                messages=[{"role": "user", "content": "Hello"}], tools=[TOOL], **namespace["SETTINGS"]
            )
        sent = provider.seen[0].json()
    assert answer.choices[0].message.content == "Done."
    assert (sent["model"], sent["top_k"], sent["parallel_tool_calls"]) == ("vendor/model-a", 20, False)


def test_render_toolbench_snippet_runs_a_conversation_with_a_tool() -> None:
    def look() -> str:
        """Looks."""
        return "grey"

    async def talk(namespace: dict[str, Any]) -> str:
        tools = PythonTools.from_functions(python_tool(look))
        async with HttpClient() as client:
            loop_result = await converse(
                namespace["conversation"](tools.registry),
                "Look.",
                build_run_context(namespace["ENDPOINT"], client, tools),
            )
        return loop_result.final_text

    with ScriptedServer([tool_call_reply(("look", {})), text_reply("Grey.")]) as provider:
        assert asyncio.run(talk(run_snippet(render_toolbench(build_exported(provider.base_url))))) == "Grey."
        assert provider.seen[0].json()["temperature"] == 0.7


def test_render_litellm_writes_model_and_parameters() -> None:
    model = yaml.safe_load(render_litellm(build_exported()))["model_list"][0]
    assert model["model_name"] == "vendor/model-a"
    assert model["litellm_params"]["model"] == "openai/vendor/model-a"
    assert model["litellm_params"]["api_key"] == "os.environ/EXAMPLE_KEY"
    assert model["litellm_params"]["extra_body"] == {"min_p": 0.0, "top_k": 20}


@pytest.mark.parametrize("base_path", ["", "/", "{prefix}", "{prefix}/"])
@pytest.mark.parametrize("api_prefix", ["/v1", "/anthropic/v1"])
def test_renderers_of_messages_give_address_without_v1(
    monkeypatch: pytest.MonkeyPatch, api_prefix: str, base_path: str
) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", "sk-test")
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
    with ScriptedServer([json_reply(answer)]) as provider:
        server = provider.base_url.removesuffix("/v1")
        exported = build_exported(server + base_path.format(prefix=api_prefix), api_prefix=api_prefix, wire="anthropic")
        python_text, litellm_text = render_anthropic(exported), render_litellm(exported)
        run_snippet(python_text)["create"]([{"role": "user", "content": "Hello"}], [])
        (seen,) = provider.seen
    assert seen.path == f"{api_prefix}/messages"
    api_base = yaml.safe_load(litellm_text)["model_list"][0]["litellm_params"]["api_base"]
    assert api_base == server + api_prefix.removesuffix("/v1")
    assert "appends" not in python_text + litellm_text


@pytest.mark.parametrize("render", [render_anthropic, render_litellm])
def test_renderers_of_messages_name_path_without_v1(render: Callable[[ExportedSettings], str]) -> None:
    exported = build_exported("https://example.test", api_prefix="/anthropic", wire="anthropic")
    assert "the provider's address is https://example.test/anthropic/messages." in render(exported)


def test_render_json_has_every_layer_and_the_resulting_policy() -> None:
    whole = json.loads(render_json(build_exported()))
    assert [layer["name"] for layer in whole["layers"]] == ["infrastructure", "profile"]
    assert whole["policy"]["max_turns"] == 4


def test_render_openai_names_the_method_that_it_lacks() -> None:
    constrained = build_exported(layers=(("run", {"method": "constrained"}),))
    assert "measured with the method constrained" in render_openai(constrained)
    assert "Messages" in render_anthropic(build_exported())


@pytest.mark.parametrize("file", FORMAT_BY_FILE)
def test_renderers_write_every_strategy(file: str) -> None:
    for strategy in ("raw", "baseline", "production"):
        layers = build_layers(strategy, "openrouter", workarounds=["deepseek_openrouter_compat"])
        assert "deepseek" in FORMAT_BY_FILE[file][1](
            build_exported(model="deepseek/deepseek-v3.2:nitro", layers=layers)
        )
