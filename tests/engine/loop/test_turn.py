import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import (
    PATCH_TOOL,
    TOOLS,
    build_answer,
    build_call,
    build_calling_answer,
    build_plan,
    run_script,
)
from tests.engine.single_turns import USER, build_body, parse, prepare
from tests.engine.streams import render_as_stream
from toolbench.engine.arguments import read_arguments
from toolbench.engine.capabilities.declared import find_declared_capabilities
from toolbench.engine.capabilities.policy_layers import build_capability_layers, build_layer_name
from toolbench.engine.capabilities.record import merge_records
from toolbench.engine.events import Delta, EndReason, OmittedParameter
from toolbench.engine.loop.turn import build_ask, build_request
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.transforms import UnknownTransformError, list_names
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.registry import get_wire_format

KINDS = ("message", "tool", "response", "tool_call", "tool_result")


def test_build_request_sorts_body_keys_for_any_input_order() -> None:
    first = prepare(
        {"top_p": 0.5, "provider": {"order": ["x"], "only": []}}, seed=7, request_overrides={"temperature": 1}
    )
    second = prepare({"provider": {"only": [], "order": ["x"]}, "temperature": 1, "top_p": 0.5}, seed=7)
    bodies = [build_request(setup, 0, USER, has_tools=True).body for setup in (first, second)]
    assert bodies[0] == bodies[1]
    assert list(build_body(first))[:4] == ["model", "messages", "tools", "tool_choice"]


def test_request_overrides_win_over_options_and_options_over_defaults() -> None:
    setup = prepare(
        {"temperature": 0.5, "max_tokens": 900},
        llm_options_defaults={"temperature": 1, "top_k": 4, "provider": {"sort": "x"}},
        request_overrides={"max_tokens": 256, "provider": {"only": ["y"]}},
    )
    sent = build_body(setup)
    assert (sent["temperature"], sent["top_k"], sent["max_tokens"]) == (0.5, 4, 256)
    assert sent["provider"] == {"sort": "x", "only": ["y"]}


@pytest.mark.parametrize("policy_key", ["request_overrides", "llm_options_defaults"])
def test_build_request_ignores_reserved_keys(policy_key: str) -> None:
    reserved = {"model": "x", "messages": [], "tools": [], "tool_choice": "none", "response_format": {}, "stream": True}
    policy: dict[str, Any] = {policy_key: {**reserved, "top_k": 1}}
    sent = build_body(prepare(**policy))
    assert sent["model"] == "m-1"
    assert sent["tool_choice"] == "auto"
    assert len(sent["messages"]) == len(sent["tools"]) == 2
    assert "response_format" not in sent
    assert "stream" not in sent
    assert sent["top_k"] == 1


def test_build_request_sends_no_hidden_tools_and_no_empty_required() -> None:
    sent = build_body(prepare())
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["state_get", "state_patch"]
    assert "required" not in sent["tools"][0]["function"]["parameters"]


def test_enforced_mode_keeps_tool_choice() -> None:
    assert build_body(prepare(tool_use_mode="enforced"))["tool_choice"] == "auto"
    assert build_body(prepare(tool_choice="required"))["tool_choice"] == "required"


def test_build_request_without_tools_sends_no_tool_parameters() -> None:
    sent = build_body(prepare(request_overrides={"parallel_tool_calls": False}), with_tools=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(sent)
    assert build_body(prepare(request_overrides={"parallel_tool_calls": False}))["parallel_tool_calls"] is False


def test_build_request_omits_blank_system_prompt() -> None:
    assert build_body(prepare(system=" \n"))["messages"] == USER
    assert build_body(prepare())["messages"][0] == {"role": "system", "content": "Be brief."}


def test_build_request_sends_lone_surrogates_as_escapes() -> None:
    raw = build_request(prepare(), 0, [{"role": "user", "content": "a\ud800"}], has_tools=False).body
    assert json.loads(raw)["messages"][1]["content"] == "a\ud800"


def test_build_request_sends_seed_only_if_set() -> None:
    assert build_body(prepare(seed=0))["seed"] == 0
    assert "seed" not in build_body(prepare())


def test_build_request_reports_tool_changes_only_if_tools_are_sent() -> None:
    setup = prepare(tool_transforms="openai-tools-strip-function-descriptions")
    request = build_request(setup, 0, USER, has_tools=True)
    assert [change.kind for change in request.changes] == ["tool", "tool"]
    assert build_request(setup, 0, USER, has_tools=False).changes == ()


def test_prepare_turns_without_argument_checks_accepts_broken_schema() -> None:
    assert prepare(tools=ToolRegistry((ToolDefinition("t", "", {"type": "nope"}),)), validate_arguments=False)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_transform_is_refused_in_strict_mode_else_ignored(kind: str) -> None:
    policy: dict[str, Any] = {f"{kind}_transforms": ["nobody_knows"]}
    assert prepare(**policy)
    with pytest.raises(UnknownTransformError):
        prepare(strict=True, **policy)


def test_parse_chat_turn_keeps_calls_up_to_the_limit_and_counts_the_rest() -> None:
    raw = build_calling_answer(build_call(call_id="a"), build_call(call_id="b"), build_call(call_id="c"))
    turn = parse(prepare(max_tool_calls_per_turn=2), raw)
    assert [call.id for call in turn.calls] == ["a", "b"]
    assert (len(turn.calls_found), turn.ignored_call_count) == (3, 1)
    assert [item["id"] for item in turn.message["tool_calls"]] == ["a", "b"]


def test_parse_chat_turn_without_tools_ignores_and_counts_all_calls() -> None:
    turn = parse(prepare(), build_calling_answer(build_call(), build_call(call_id="b")), with_tools=False)
    assert (turn.calls, turn.ignored_call_count, len(turn.calls_found)) == ((), 2, 2)
    assert "tool_calls" not in turn.message


def test_parse_chat_turn_repairs_ids_and_names_and_keeps_calls_found() -> None:
    turn = parse(
        prepare(),
        build_calling_answer(build_call(" state_get ", call_id=""), build_call(call_id="x"), build_call(call_id="x")),
    )
    assert [call.id for call in turn.calls] == ["tc_1", "x", "x__2"]
    assert turn.calls[0].name == "state_get"
    assert [item.id for item in turn.calls_found] == ["", "x", "x"]
    assert [item["id"] for item in turn.message["tool_calls"]] == ["tc_1", "x", "x__2"]


def test_parse_chat_turn_reads_single_call_object_without_transform() -> None:
    turn = parse(prepare(), build_answer(None, calls=build_call(arguments={})))
    assert [call.name for call in turn.calls] == ["state_get"]


@pytest.mark.parametrize(
    ("calls", "names"),
    [("state_get", []), (7, []), ([1, "x", None], []), ({}, [""]), ([{}], [""]), ([{"function": "state_get"}], [""])],
)
def test_parse_chat_turn_malformed_calls_keep_text_and_have_no_name(calls: Any, names: list[str]) -> None:
    turn = parse(prepare(), build_answer("Hi", calls=calls))
    assert turn.text == "Hi"
    assert [call.name for call in turn.calls] == names


def test_parse_chat_turn_keeps_unknown_fields_and_drops_empty_ones() -> None:
    signed_call = {**build_call(), "signature": "s"}
    turn = parse(
        prepare(),
        build_answer(None, calls=[signed_call], reasoning_content="hm", refusal=None, function_call={"name": "x"}),
    )
    assert turn.message["reasoning_content"] == "hm"
    assert turn.message["tool_calls"][0]["signature"] == "s"
    assert turn.message["content"] == ""
    assert not {"refusal", "function_call"} & set(turn.message)


def test_parse_chat_turn_keeps_text_beside_calls() -> None:
    turn = parse(prepare(), build_answer("Let me look.", calls=[build_call()]))
    assert (turn.text, turn.message["content"]) == ("Let me look.", "Let me look.")


def test_parse_chat_turn_applies_response_then_call_transforms() -> None:
    legacy = build_answer(None, function_call={"name": "state_get", "arguments": ""})
    turn = parse(
        prepare(
            response_transforms="assistant_function_call_to_tool_calls",
            tool_call_transforms="assistant_tool_calls_arguments_blank_to_empty_object",
        ),
        legacy,
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [("state_get", "{}")]
    assert {change.kind for change in turn.changes} == {"response", "tool_call"}


def test_parse_chat_turn_does_not_transform_ignored_calls() -> None:
    transforms = "assistant_tool_calls_arguments_blank_to_empty_object"
    turn = parse(
        prepare(tool_call_transforms=transforms), build_calling_answer(build_call(arguments="")), with_tools=False
    )
    assert (turn.changes, turn.ignored_call_count) == ((), 1)


def test_request_overrides_do_not_replace_constraint() -> None:
    sent = build_body(
        prepare(method="constrained", constraint="grammar", request_overrides={"grammar": "mine", "top_k": 1})
    )
    assert (sent["grammar"] != "mine", sent["top_k"]) == (True, 1)


def test_native_and_text_json_requests_share_no_instruction() -> None:
    native, text = build_body(prepare()), build_body(prepare(method="text_json"))
    assert "```json" not in json.dumps(native)
    assert "tools" not in text
    assert "tool_choice" not in text
    assert PATCH_TOOL.name in text["messages"][0]["content"]


KEYS = st.sampled_from(
    ["content", "tool_calls", "function_call", "function", "name", "arguments", "id", "text", "final"]
)
TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "state_get",
        '{"name":"state_get","arguments":{}}',
        "```json\n{",
        "<tool_call>state_get {}</tool_call>",
        '{"final":1}',
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("method", ["native", "text_json", "constrained"])
@settings(deadline=None, database=None, max_examples=150)
@given(message=st.dictionaries(KEYS, VALUES, max_size=4))
def test_run_loop_with_all_transforms_accepts_any_message(method: str, message: JsonObject) -> None:
    transforms: dict[str, Any] = {f"{kind}_transforms": list_names(kind) for kind in KINDS}
    raw = json.dumps({"choices": [{"message": message}]}).encode()
    run = run_script(build_plan(method=method, max_turns=2, fix_empty_final=False, **transforms), [raw, raw])
    assert run.ended.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED)
    calls = [item for sent in run.ended.history for item in sent.get("tool_calls", ())]
    results = [sent for sent in run.ended.history if sent["role"] == "tool"]
    assert len(calls) == len(results), "every call in the history has its result"


@pytest.mark.parametrize(
    "policy", [{"method": "template"}, {"response_transforms": ["tool_calls_from_text"]}], ids=["template", "transform"]
)
def test_guess_untyped_policy_decides_type_of_tagged_values(policy: JsonObject) -> None:
    answer = build_answer("<tool_call><function=state_get>\n<parameter=x>\n3\n</parameter>\n</function></tool_call>")
    arguments = [
        parse(prepare(text_format="qwen3_coder", guess_untyped=guess, **policy), answer).calls[0].arguments
        for guess in (False, True)
    ]
    assert arguments == ['{"x":"3"}', '{"x":3}']


@pytest.mark.parametrize("limit", [3, 200_000])
@pytest.mark.parametrize("method", ["text_json", "constrained", "template"])
@given(arguments=st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
@settings(max_examples=10)
def test_call_in_text_has_read_arguments_of_its_argument_text(
    method: str, limit: int, arguments: dict[str, Any]
) -> None:
    call_json = json.dumps({"name": TOOLS.definitions[0].name, "arguments": arguments})
    text = f"<tool_call>{call_json}</tool_call>" if method == "template" else call_json
    (call,) = parse(prepare(method=method, text_format="hermes", max_tool_args_bytes=limit), build_answer(text)).calls
    assert call.read_arguments == read_arguments(call.arguments, limit)


def test_call_changed_by_transform_has_new_read_arguments() -> None:
    use = {"recipient_name": f"functions.{PATCH_TOOL.name}", "parameters": {"a": 1}}
    call_json = json.dumps({"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [use]}})
    setup = prepare(method="template", text_format="hermes", tool_call_transforms="multi_tool_use_parallel_to_calls")
    (call,) = parse(setup, build_answer(f"<tool_call>{call_json}</tool_call>")).calls
    assert call.read_arguments is not None
    assert call.read_arguments.arguments == {"a": 1}


UNTYPED = {key: value for key, value in build_call().items() if key != "type"}


def test_usual_findings_are_not_reported() -> None:
    raw = build_answer("Let me see.", calls=[UNTYPED], finish="tool_calls")
    assert [finding.code for finding in parse(prepare(), raw).findings] == ["content_beside_calls", "call_type"]
    assert [finding.code for finding in parse(prepare(usual_findings=["call_type"]), raw).findings] == [
        "content_beside_calls"
    ]


@pytest.mark.parametrize(("template", "code"), [("mistral", "call_type"), ("anthropic", "content_beside_calls")])
def test_declared_usual_findings_of_provider_are_not_reported(template: str, code: str) -> None:
    capabilities = find_declared_capabilities(template)
    assert capabilities is not None
    patch = dict(build_capability_layers(merge_records([capabilities]), {}))[build_layer_name(capabilities)]
    answers = {
        "call_type": build_answer(None, calls=[UNTYPED], finish="tool_calls"),
        "content_beside_calls": build_answer("Let me see.", calls=[build_call()], finish="tool_calls"),
    }

    assert [finding.code for finding in parse(prepare(), answers[code]).findings] == [code]
    assert parse(prepare(usual_findings=patch["usual_findings"]), answers[code]).findings == ()


def test_text_beside_calls_is_no_finding_in_anthropic_format() -> None:
    setup = replace(prepare(), wire_format=get_wire_format("anthropic"))
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "state_get", "input": {}}
    text_block = {"type": "text", "text": "Let me see."}
    usage = {"input_tokens": 3, "output_tokens": 2}

    turn = parse(
        setup, json.dumps({"content": [text_block, tool_use], "stop_reason": "tool_use", "usage": usage}).encode()
    )

    assert (turn.text, [call.name for call in turn.calls], turn.findings) == ("Let me see.", ["state_get"], ())


def build_both_bodies(setup: TurnSetup, *, must_call: bool) -> list[JsonObject]:
    """Return the request bodies of `build_request` and of `build_ask`."""
    request = build_ask(setup, 0, USER, has_tools=True, must_call=must_call).request
    return [
        json.loads(item.body) for item in (build_request(setup, 0, USER, has_tools=True, must_call=must_call), request)
    ]


def test_must_call_removes_final_text_only_from_constrained_request() -> None:
    constrained = prepare(method="constrained")
    optional, required = build_both_bodies(constrained, must_call=False), build_both_bodies(constrained, must_call=True)
    assert optional[0] == optional[1] == build_body(constrained)
    assert optional[0] == json.loads(build_ask(constrained, 0, USER, has_tools=True).request.body)
    assert required[0] == required[1] != optional[0]
    assert build_both_bodies(prepare(), must_call=True)[0]["tool_choice"] == "auto"


def test_must_call_keeps_tool_choice_of_the_policy() -> None:
    setup = prepare(method="constrained", tool_choice="none")
    assert build_both_bodies(setup, must_call=True) == build_both_bodies(setup, must_call=False)


def test_streamed_request_asks_for_usage_and_has_truncation_retries() -> None:
    setup = prepare(cut_stream_retries=3)
    plain = build_request(setup, 0, USER, has_tools=True)
    assert (plain.is_streamed, plain.truncation_retries, "stream" in json.loads(plain.body)) == (False, 0, False)
    streamed = build_request(replace(setup, is_streamed=True), 0, USER, has_tools=True)
    assert (streamed.is_streamed, streamed.truncation_retries) == (True, 3)
    sent = json.loads(streamed.body)
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    without_usage = build_body(replace(prepare({"stream_options": None}), is_streamed=True))
    assert (without_usage["stream"], "stream_options" in without_usage) == (True, False)


@pytest.mark.parametrize(("pattern", "kept"), [("", True), ("^[a-zA-Z0-9]{9}$", False)])
def test_build_request_fits_history_ids_to_tool_id_pattern(pattern: str, kept: bool) -> None:
    history: list[Message] = [*USER, {"role": "assistant", "content": "", "tool_calls": [build_call(call_id="a b")]}]
    request = build_request(prepare(tool_id_pattern=pattern), 0, history, has_tools=True)
    sent = json.loads(request.body)["messages"][-1]["tool_calls"][0]["id"]
    assert (sent == "a b") == kept
    assert [change.name for change in request.changes] == ([] if kept else ["tool_call_ids_fit_pattern"])


def test_findings_are_reported_only_for_structured_calls() -> None:
    structured = parse(prepare(), build_answer(None, calls=[build_call()]))
    assert [finding.code for finding in structured.findings] == ["finish_mismatch"]
    text_json = parse(prepare(method="text_json"), build_answer('```json\n{"name": "state_get", "arguments": {}}\n```'))
    assert (len(text_json.calls), text_json.findings) == (1, ())


@pytest.mark.parametrize(("method", "mode"), [("native", "tool_use"), ("text_json", "json_fallback")])
def test_turn_mode_names_method_only_if_tools_were_sent(method: str, mode: str) -> None:
    assert parse(prepare(method=method), build_answer()).mode == mode
    assert parse(prepare(method=method), build_answer(), with_tools=False).mode == ""


@pytest.mark.parametrize(("finish", "truncated"), [("tool_calls", False), ("length", True)])
def test_missing_closers_repair_skips_truncated_answers(finish: str, truncated: bool) -> None:
    turn = parse(
        prepare(argument_repairs="missing_closers"),
        build_answer(None, calls=[build_call("t", '{"ops": []')], finish=finish),
    )
    assert turn.calls[0].arguments == ('{"ops": []' if truncated else '{"ops": []}')
    assert [error.truncated for error in turn.parse_errors] == [truncated]


@pytest.mark.parametrize("with_tools", [True, False])
def test_streamed_text_has_call_deltas_only_if_tools_were_sent(with_tools: bool) -> None:
    deltas: list[Delta] = []
    setup = replace(prepare(method="text_json"), is_streamed=True)
    decoder = build_ask(setup, 0, USER, has_tools=with_tools, on_delta=deltas.append).decoder
    decoder.feed(render_as_stream(build_answer('```json\n{"name": "state_get", "arguments": {"a": 1}}\n```')))
    assert bool(decoder.close().calls) == with_tools
    assert any(delta.call_index is not None for delta in deltas) == with_tools


def test_build_request_reports_only_omitted_parameters_that_were_set() -> None:
    setup = prepare(seed=7).omit_parameters(
        [OmittedParameter("seed", "It refused it."), OmittedParameter("min_p", "It refused it.")]
    )
    request = build_request(setup, 0, USER, has_tools=True)
    assert [item.name for item in request.omitted_parameters] == ["seed"]
    assert "seed" not in json.loads(request.body)
