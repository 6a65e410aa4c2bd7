import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import PATCH_TOOL, TOOLS, build_answer, build_call, build_calling_answer, run_script
from tests.engine.scripted_model import build_plan as planned
from tests.engine.single_turns import USER, body, read, setup
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


def test_request_body_keys_have_one_order_for_any_input_order() -> None:
    one = setup({"top_p": 0.5, "provider": {"order": ["x"], "only": []}}, seed=7, request_overrides={"temperature": 1})
    two = setup({"provider": {"only": [], "order": ["x"]}, "temperature": 1, "top_p": 0.5}, seed=7)
    bytes_of = [build_request(given, 0, USER, has_tools=True).body for given in (one, two)]
    assert bytes_of[0] == bytes_of[1]
    assert list(body(one))[:4] == ["model", "messages", "tools", "tool_choice"]


def test_overrides_beat_options_and_options_beat_defaults() -> None:
    given = setup(
        {"temperature": 0.5, "max_tokens": 900},
        llm_options_defaults={"temperature": 1, "top_k": 4, "provider": {"sort": "x"}},
        request_overrides={"max_tokens": 256, "provider": {"only": ["y"]}},
    )
    sent = body(given)
    assert (sent["temperature"], sent["top_k"], sent["max_tokens"]) == (0.5, 4, 256)
    assert sent["provider"] == {"sort": "x", "only": ["y"]}


@pytest.mark.parametrize("place", ["request_overrides", "llm_options_defaults"])
def test_reserved_keys_never_reach_the_body(place: str) -> None:
    reserved = {"model": "x", "messages": [], "tools": [], "tool_choice": "none", "response_format": {}, "stream": True}
    policy: dict[str, Any] = {place: {**reserved, "top_k": 1}}
    sent = body(setup(**policy))
    assert sent["model"] == "m-1"
    assert sent["tool_choice"] == "auto"
    assert len(sent["messages"]) == len(sent["tools"]) == 2
    assert "response_format" not in sent
    assert "stream" not in sent
    assert sent["top_k"] == 1


def test_tools_go_out_without_hidden_ones_and_without_empty_required_lists() -> None:
    sent = body(setup())
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["state_get", "state_patch"]
    assert "required" not in sent["tools"][0]["function"]["parameters"]


def test_enforced_does_not_change_the_tool_choice() -> None:
    assert body(setup(tool_use_mode="enforced"))["tool_choice"] == "auto"
    assert body(setup(tool_choice="required"))["tool_choice"] == "required"


def test_without_tools_nothing_of_them_is_sent() -> None:
    sent = body(setup(request_overrides={"parallel_tool_calls": False}), with_tools=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(sent)
    assert body(setup(request_overrides={"parallel_tool_calls": False}))["parallel_tool_calls"] is False


def test_a_blank_system_text_is_not_sent() -> None:
    assert body(setup(system=" \n"))["messages"] == USER
    assert body(setup())["messages"][0] == {"role": "system", "content": "Be brief."}


def test_lone_surrogates_travel_as_escapes() -> None:
    raw = build_request(setup(), 0, [{"role": "user", "content": "a\ud800"}], has_tools=False).body
    assert json.loads(raw)["messages"][1]["content"] == "a\ud800"


def test_the_seed_is_sent_when_there_is_one() -> None:
    assert body(setup(seed=0))["seed"] == 0
    assert "seed" not in body(setup())


def test_what_transforms_changed_on_the_way_out_is_told_with_the_request() -> None:
    given = setup(tool_transforms="openai-tools-strip-function-descriptions")
    request = build_request(given, 0, USER, has_tools=True)
    assert [change.kind for change in request.changes] == ["tool", "tool"]
    assert build_request(given, 0, USER, has_tools=False).changes == ()


def test_a_broken_schema_is_no_matter_where_schemas_are_not_checked() -> None:
    assert setup(tools=ToolRegistry((ToolDefinition("t", "", {"type": "nope"}),)), validate_arguments=False)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_transform_is_refused_if_strict_and_skipped_otherwise(kind: str) -> None:
    policy: dict[str, Any] = {f"{kind}_transforms": ["nobody_knows"]}
    assert setup(**policy)
    with pytest.raises(UnknownTransformError):
        setup(strict=True, **policy)


def test_calls_are_kept_up_to_the_cap_and_the_rest_is_counted() -> None:
    raw = build_calling_answer(build_call(call_id="a"), build_call(call_id="b"), build_call(call_id="c"))
    turn = read(setup(max_tool_calls_per_turn=2), raw)
    assert [call.id for call in turn.calls] == ["a", "b"]
    assert (len(turn.calls_found), turn.ignored_call_count) == (3, 1)
    assert [item["id"] for item in turn.message["tool_calls"]] == ["a", "b"]


def test_without_tools_all_calls_are_ignored_and_counted() -> None:
    turn = read(setup(), build_calling_answer(build_call(), build_call(call_id="b")), with_tools=False)
    assert (turn.calls, turn.ignored_call_count, len(turn.calls_found)) == ((), 2, 2)
    assert "tool_calls" not in turn.message


def test_ids_and_names_are_mended_and_what_was_found_is_kept_beside() -> None:
    turn = read(
        setup(),
        build_calling_answer(build_call(" state_get ", call_id=""), build_call(call_id="x"), build_call(call_id="x")),
    )
    assert [call.id for call in turn.calls] == ["tc_1", "x", "x__2"]
    assert turn.calls[0].name == "state_get"
    assert [item.id for item in turn.calls_found] == ["", "x", "x"]
    assert [item["id"] for item in turn.message["tool_calls"]] == ["tc_1", "x", "x__2"]


def test_a_lone_call_object_is_read_without_any_transform() -> None:
    turn = read(setup(), build_answer(None, calls=build_call(arguments={})))
    assert [call.name for call in turn.calls] == ["state_get"]


@pytest.mark.parametrize("calls", ["state_get", 7, [1, "x", None], {}, [{}], [{"function": "state_get"}]])
def test_odd_calls_never_break_the_reading(calls: Any) -> None:
    turn = read(setup(), build_answer("Hi", calls=calls))
    assert turn.text == "Hi"
    assert all(call.name == "" for call in turn.calls)


def test_fields_nobody_knows_go_back_to_the_model_and_empty_ones_do_not() -> None:
    with_signature = {**build_call(), "signature": "s"}
    turn = read(
        setup(),
        build_answer(None, calls=[with_signature], reasoning_content="hm", refusal=None, function_call={"name": "x"}),
    )
    assert turn.message["reasoning_content"] == "hm"
    assert turn.message["tool_calls"][0]["signature"] == "s"
    assert turn.message["content"] == ""
    assert not {"refusal", "function_call"} & set(turn.message)


def test_text_beside_calls_stays_in_the_history() -> None:
    turn = read(setup(), build_answer("Let me look.", calls=[build_call()]))
    assert (turn.text, turn.message["content"]) == ("Let me look.", "Let me look.")


def test_transforms_of_answer_and_calls_are_applied_in_order_and_told() -> None:
    legacy = build_answer(None, function_call={"name": "state_get", "arguments": ""})
    turn = read(
        setup(
            response_transforms="assistant_function_call_to_tool_calls",
            tool_call_transforms="assistant_tool_calls_arguments_blank_to_empty_object",
        ),
        legacy,
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [("state_get", "{}")]
    assert {change.kind for change in turn.changes} == {"response", "tool_call"}


def test_calls_that_are_ignored_are_not_transformed() -> None:
    transforms = "assistant_tool_calls_arguments_blank_to_empty_object"
    turn = read(
        setup(tool_call_transforms=transforms), build_calling_answer(build_call(arguments="")), with_tools=False
    )
    assert (turn.changes, turn.ignored_call_count) == ((), 1)


def test_what_the_method_asks_with_is_not_overridden() -> None:
    sent = body(setup(method="constrained", constraint="grammar", request_overrides={"grammar": "mine", "top_k": 1}))
    assert (sent["grammar"] != "mine", sent["top_k"]) == (True, 1)


def test_the_methods_prompts_are_never_mixed() -> None:
    native, text = body(setup()), body(setup(method="text_json"))
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
def test_no_message_breaks_the_reading_with_every_transform_on(method: str, message: JsonObject) -> None:
    every: dict[str, Any] = {f"{kind}_transforms": list_names(kind) for kind in KINDS}
    raw = json.dumps({"choices": [{"message": message}]}).encode()
    played = run_script(planned(method=method, max_turns=2, fix_empty_final=False, **every), [raw, raw])
    assert played.ended.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED)
    calls = [item for sent in played.ended.history for item in sent.get("tool_calls", ())]
    results = [sent for sent in played.ended.history if sent["role"] == "tool"]
    assert len(calls) == len(results), "every call in the history has its result"


@pytest.mark.parametrize(
    "policy", [{"method": "template"}, {"response_transforms": ["tool_calls_from_text"]}], ids=["template", "healed"]
)
def test_untyped_tagged_values_are_guessed_where_the_policy_says_so(policy: JsonObject) -> None:
    said = build_answer("<tool_call><function=state_get>\n<parameter=x>\n3\n</parameter>\n</function></tool_call>")
    arguments = [
        read(setup(text_format="qwen3_coder", guess_untyped=guess, **policy), said).calls[0].arguments
        for guess in (False, True)
    ]
    assert arguments == ['{"x":"3"}', '{"x":3}']


@pytest.mark.parametrize("limit", [3, 200_000])
@pytest.mark.parametrize("method", ["text_json", "constrained", "template"])
@given(given=st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
@settings(max_examples=10)
def test_a_call_written_in_text_is_read_as_its_written_arguments_are(
    method: str, limit: int, given: dict[str, Any]
) -> None:
    written = json.dumps({"name": TOOLS.definitions[0].name, "arguments": given})
    said = f"<tool_call>{written}</tool_call>" if method == "template" else written
    (made,) = read(setup(method=method, text_format="hermes", max_tool_args_bytes=limit), build_answer(said)).calls
    assert made.read_arguments == read_arguments(made.arguments, limit)


def test_calls_that_were_changed_are_read_anew() -> None:
    use = {"recipient_name": f"functions.{PATCH_TOOL.name}", "parameters": {"a": 1}}
    said = json.dumps({"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [use]}})
    given = setup(method="template", text_format="hermes", tool_call_transforms="multi_tool_use_parallel_to_calls")
    (made,) = read(given, build_answer(f"<tool_call>{said}</tool_call>")).calls
    assert made.read_arguments is not None
    assert made.read_arguments.arguments == {"a": 1}


UNTYPED = {key: value for key, value in build_call().items() if key != "type"}


def test_findings_that_are_usual_at_an_endpoint_are_not_reported() -> None:
    body = build_answer("Let me see.", calls=[UNTYPED], finish="tool_calls")
    assert [finding.code for finding in read(setup(), body).findings] == ["content_beside_calls", "call_type"]
    assert [finding.code for finding in read(setup(usual_findings=["call_type"]), body).findings] == [
        "content_beside_calls"
    ]


@pytest.mark.parametrize(("template", "code"), [("mistral", "call_type"), ("anthropic", "content_beside_calls")])
def test_what_a_provider_always_does_is_declared_and_no_finding(template: str, code: str) -> None:
    told = find_declared_capabilities(template)
    assert told is not None
    patch = dict(build_capability_layers(merge_records([told]), {}))[build_layer_name(told)]
    found = {
        "call_type": build_answer(None, calls=[UNTYPED], finish="tool_calls"),
        "content_beside_calls": build_answer("Let me see.", calls=[build_call()], finish="tool_calls"),
    }

    assert [finding.code for finding in read(setup(), found[code]).findings] == [code]
    assert read(setup(usual_findings=patch["usual_findings"]), found[code]).findings == ()


def test_text_beside_calls_is_normal_where_messages_are_spoken() -> None:
    given = replace(setup(), wire_format=get_wire_format("anthropic"))
    use = {"type": "tool_use", "id": "toolu_1", "name": "state_get", "input": {}}
    said = {"type": "text", "text": "Let me see."}
    usage = {"input_tokens": 3, "output_tokens": 2}

    turn = read(given, json.dumps({"content": [said, use], "stop_reason": "tool_use", "usage": usage}).encode())

    assert (turn.text, [call.name for call in turn.calls], turn.findings) == ("Let me see.", ["state_get"], ())


def asked(given: TurnSetup, *, must_call: bool) -> list[JsonObject]:
    """What is asked for directly and through the whole turn."""
    whole = build_ask(given, 0, USER, has_tools=True, must_call=must_call).request
    return [
        json.loads(item.body) for item in (build_request(given, 0, USER, has_tools=True, must_call=must_call), whole)
    ]


def test_only_a_constrained_turn_that_must_call_allows_nothing_else() -> None:
    constrained = setup(method="constrained")
    free, held = asked(constrained, must_call=False), asked(constrained, must_call=True)
    assert free[0] == free[1] == body(constrained)
    assert free[0] == json.loads(build_ask(constrained, 0, USER, has_tools=True).request.body)
    assert held[0] == held[1] != free[0]
    assert asked(setup(), must_call=True)[0]["tool_choice"] == "auto"


def test_a_turn_that_must_call_keeps_a_tool_choice_of_its_own() -> None:
    given = setup(method="constrained", tool_choice="none")
    assert asked(given, must_call=True) == asked(given, must_call=False)


def test_a_stream_is_asked_for_with_its_usage_and_its_retries() -> None:
    given = setup(cut_stream_retries=3)
    whole = build_request(given, 0, USER, has_tools=True)
    assert (whole.is_streamed, whole.truncation_retries, "stream" in json.loads(whole.body)) == (False, 0, False)
    streamed = build_request(replace(given, is_streamed=True), 0, USER, has_tools=True)
    assert (streamed.is_streamed, streamed.truncation_retries) == (True, 3)
    sent = json.loads(streamed.body)
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    unwanted = body(replace(setup({"stream_options": None}), is_streamed=True))
    assert (unwanted["stream"], "stream_options" in unwanted) == (True, False)


@pytest.mark.parametrize(("pattern", "kept"), [("", True), ("^[a-zA-Z0-9]{9}$", False)])
def test_ids_of_the_history_are_made_to_fit_a_known_pattern(pattern: str, kept: bool) -> None:
    history: list[Message] = [*USER, {"role": "assistant", "content": "", "tool_calls": [build_call(call_id="a b")]}]
    request = build_request(setup(tool_id_pattern=pattern), 0, history, has_tools=True)
    sent = json.loads(request.body)["messages"][-1]["tool_calls"][0]["id"]
    assert (sent == "a b") == kept
    assert [change.name for change in request.changes] == ([] if kept else ["tool_call_ids_fit_pattern"])


def test_remarks_are_made_on_structured_calls_only() -> None:
    structured = read(setup(), build_answer(None, calls=[build_call()]))
    assert [finding.code for finding in structured.findings] == ["finish_mismatch"]
    written = read(setup(method="text_json"), build_answer('```json\n{"name": "state_get", "arguments": {}}\n```'))
    assert (len(written.calls), written.findings) == (1, ())


@pytest.mark.parametrize(("method", "mode"), [("native", "tool_use"), ("text_json", "json_fallback")])
def test_a_turn_names_how_calls_were_asked_for(method: str, mode: str) -> None:
    assert read(setup(method=method), build_answer()).mode == mode
    assert read(setup(method=method), build_answer(), with_tools=False).mode == ""


@pytest.mark.parametrize(("finish", "truncated"), [("tool_calls", False), ("length", True)])
def test_missing_brackets_are_invented_only_where_the_model_stopped(finish: str, truncated: bool) -> None:
    turn = read(
        setup(argument_repairs="missing_closers"),
        build_answer(None, calls=[build_call("t", '{"ops": []')], finish=finish),
    )
    assert turn.calls[0].arguments == ('{"ops": []' if truncated else '{"ops": []}')
    assert [error.truncated for error in turn.parse_errors] == [truncated]


@pytest.mark.parametrize("with_tools", [True, False])
def test_calls_in_a_streamed_text_are_told_only_where_tools_were_sent(with_tools: bool) -> None:
    deltas: list[Delta] = []
    given = replace(setup(method="text_json"), is_streamed=True)
    decoder = build_ask(given, 0, USER, has_tools=with_tools, on_delta=deltas.append).decoder
    decoder.feed(render_as_stream(build_answer('```json\n{"name": "state_get", "arguments": {"a": 1}}\n```')))
    assert bool(decoder.close().calls) == with_tools
    assert any(delta.call_index is not None for delta in deltas) == with_tools


def test_request_names_what_it_had_and_left_out_alone() -> None:
    given = setup(seed=7).omit_parameters(
        [OmittedParameter("seed", "It refused it."), OmittedParameter("min_p", "It refused it.")]
    )
    request = build_request(given, 0, USER, has_tools=True)
    assert [item.name for item in request.omitted_parameters] == ["seed"]
    assert "seed" not in json.loads(request.body)
