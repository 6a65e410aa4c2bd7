import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import (
    TOOLS,
    LoopRun,
    build_answer,
    build_call,
    build_calling_answer,
    build_no_tool_support_error,
    build_plan,
    return_failure,
    return_success,
    run_script,
    use_in_order,
)
from toolbench.engine.events import Ask, EndReason, ExchangeError, Outcome, StopReason, StopRun
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.types import Usage

GET_CALL = build_calling_answer(build_call())
PATCH_CALL = build_calling_answer(build_call("state_patch", '{"ops":[{"op":"set"}]}'))
DONE = build_answer()


def list_error_codes(run: LoopRun) -> list[str]:
    return [error["code"] for envelope in run.tool_envelopes() for error in envelope["errors"]]


def test_run_loop_executes_calls_until_final_answer() -> None:
    run = run_script(build_plan(system="S"), [GET_CALL, PATCH_CALL, DONE])
    assert run.ended.end is EndReason.FINAL
    assert run.ended.final_text == "Done."
    assert [call.name for call in run.ran] == ["state_get", "state_patch"]
    assert [message["role"] for message in run.bodies[2]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [message["role"] for message in run.ended.history][-1] == "assistant"
    assert [record.turn for record in run.ended.turns] == [0, 1, 2]


def test_run_loop_truncated_final_answer_ends_with_length() -> None:
    run = run_script(build_plan(), [GET_CALL, build_answer("Almost d", finish="length")])
    assert (run.ended.end, run.ended.final_text) == (EndReason.LENGTH, "Almost d")
    enforced = run_script(build_plan(tool_use_mode="enforced"), [build_answer("Almost d", finish="length")])
    assert enforced.ended.end is EndReason.NO_TOOL_CALLS


def test_run_loop_adds_results_in_call_order() -> None:
    answer = build_calling_answer(
        build_call(call_id="a"), build_call("nope", call_id="b"), build_call("state_patch", '{"ops":[]}', call_id="c")
    )
    run = run_script(build_plan(), [answer, DONE])
    tool_messages = [message for message in run.ended.history if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in tool_messages] == ["a", "b", "c"]
    assert [call.id for call in run.ran] == ["a", "c"]
    assert [result.was_executed for result in run.ended.turns[0].results] == [True, False, True]


def test_run_loop_sums_usage_over_turns() -> None:
    assert run_script(build_plan(), [GET_CALL, DONE]).ended.usage == Usage(20, 4)


# limits


def test_run_loop_at_max_turns_ends_run_and_keeps_history() -> None:
    run = run_script(build_plan(max_turns=2), [GET_CALL, GET_CALL])
    assert run.ended.end is EndReason.MAX_TURNS_EXCEEDED
    assert len(run.ended.turns) == 2
    assert len(run.ended.history) == 5
    assert run.ended.usage.input_tokens == 20
    assert run.ended.final_text == ""


def test_run_loop_with_parallel_calls_off_executes_one_call_per_turn() -> None:
    answer = build_calling_answer(build_call(call_id="a"), build_call(call_id="b"))
    run = run_script(build_plan(request_overrides={"parallel_tool_calls": False}), [answer, DONE])
    assert len(run.ran) == 1
    assert run.list_event_data("llm_request_end")[0]["ignored_tool_calls_count"] == 1


@pytest.mark.parametrize("arguments", ['{"a":"' + "x" * 300 + '"}', {"a": "x" * 300}])
def test_run_loop_refuses_too_large_arguments_and_continues(arguments: Any) -> None:
    run = run_script(build_plan(max_tool_args_bytes=300), [build_calling_answer(build_call(arguments=arguments)), DONE])
    assert (list_error_codes(run), run.ran) == (["ARGUMENTS_TOO_LARGE"], [])
    assert run.ended.end is EndReason.FINAL


def test_run_loop_replaces_too_large_tool_output() -> None:
    run = run_script(build_plan(max_tool_output_bytes=200), [GET_CALL, DONE], lambda _: Outcome({"text": "x" * 500}))
    assert list_error_codes(run) == ["TOOL_OUTPUT_TOO_LARGE"]
    assert run.ended.turns[0].results[0].is_output_replaced


def test_run_loop_returns_parse_error_for_unreadable_arguments() -> None:
    run = run_script(build_plan(), [build_calling_answer(build_call(arguments='{"a": "cut')), DONE])
    assert (list_error_codes(run), run.ran) == (["ARGUMENTS_JSON_PARSE_ERROR"], [])


def test_run_loop_returns_argument_error_for_schema_violation() -> None:
    run = run_script(build_plan(), [build_calling_answer(build_call("state_patch", '{"ops":"set"}')), PATCH_CALL, DONE])
    assert list_error_codes(run) == ["ARGUMENT_ERROR"]
    assert "$.ops" in run.tool_envelopes()[0]["errors"][0]["message"]
    assert len(run.ran) == 1


# modes


def test_disabled_mode_sends_no_tools_and_executes_no_call() -> None:
    run = run_script(build_plan(tool_use_mode="disabled"), [build_answer("Done.", calls=[build_call()])])
    assert "tools" not in run.bodies[0]
    assert (run.ran, run.ended.end) == ([], EndReason.FINAL)
    assert run.ended.turns[0].answer is not None
    assert run.ended.turns[0].answer.ignored_call_count == 1
    assert "tool_calls" not in run.ended.history[-1]


def test_relaxed_mode_accepts_answer_without_calls() -> None:
    assert run_script(build_plan(tool_use_mode="relaxed"), [DONE]).ended.end is EndReason.FINAL


def test_enforced_mode_without_call_ends_with_no_tool_calls() -> None:
    run = run_script(build_plan(tool_use_mode="enforced"), [DONE])
    assert run.ended.end is EndReason.NO_TOOL_CALLS
    assert run.ended.final_text == "Done."


def test_fatal_policy_lists_tools_whose_last_call_failed() -> None:
    run = run_script(
        build_plan(tool_use_mode="enforced"),
        [PATCH_CALL, GET_CALL, build_calling_answer(build_call("nope")), DONE],
        return_failure,
    )
    assert run.ended.end is EndReason.TOOL_ERROR
    assert run.ended.failed_tools == ("nope", "state_get", "state_patch")
    assert len(run.ended.turns) == 4


def test_fatal_policy_accepts_later_success_of_same_tool() -> None:
    run = run_script(
        build_plan(tool_use_mode="enforced"),
        [GET_CALL, GET_CALL, GET_CALL, DONE],
        use_in_order(return_failure, return_failure, return_success),
    )
    assert run.ended.end is EndReason.FINAL


def test_fatal_policy_ignores_later_success_of_other_tool() -> None:
    run = run_script(
        build_plan(tool_use_mode="enforced"), [PATCH_CALL, GET_CALL, DONE], use_in_order(return_failure, return_success)
    )
    assert run.ended.failed_tools == ("state_patch",)


def test_fatal_policy_uses_latest_result_of_tool() -> None:
    run = run_script(
        build_plan(tool_use_mode="enforced"), [GET_CALL, GET_CALL, DONE], use_in_order(return_success, return_failure)
    )
    assert run.ended.failed_tools == ("state_get",)


def test_fatal_policy_matches_refused_dotted_name_to_its_tool() -> None:
    dotted_call = build_calling_answer(build_call("state.patch", '{"ops":1}'))
    assert (
        run_script(build_plan(tool_use_mode="enforced"), [dotted_call, PATCH_CALL, DONE]).ended.end is EndReason.FINAL
    )


def test_fatal_policy_counts_unknown_tool_as_failed() -> None:
    run = run_script(build_plan(tool_use_mode="enforced"), [build_calling_answer(build_call("nope")), GET_CALL, DONE])
    assert run.ended.failed_tools == ("nope",)


def test_tolerated_policy_needs_one_successful_call() -> None:
    policy: dict[str, Any] = {"tool_use_mode": "enforced", "tool_failure_policy": "tolerated"}
    assert (
        run_script(build_plan(**policy), [build_calling_answer(build_call("nope")), GET_CALL, DONE]).ended.end
        is EndReason.FINAL
    )
    assert (
        run_script(build_plan(**policy), [build_calling_answer(build_call("nope")), DONE]).ended.end
        is EndReason.TOOL_ERROR
    )


def test_relaxed_mode_ignores_tool_failures() -> None:
    assert run_script(build_plan(), [GET_CALL, DONE], return_failure).ended.end is EndReason.FINAL


def test_enforced_mode_with_all_tools_denied_ends_with_no_tool_calls() -> None:
    run = run_script(build_plan(tool_use_mode="enforced", tool_denylist="state_get,state_patch"), [DONE])
    assert "tools" not in run.bodies[0]
    assert run.ended.end is EndReason.NO_TOOL_CALLS


# endpoints that fail


def test_run_loop_retries_without_tools_if_endpoint_refuses_them() -> None:
    run = run_script(build_plan(fallback_retry_count=1), [build_no_tool_support_error(), DONE])
    assert run.bodies[0]["tool_choice"] == "auto"
    assert not {"tools", "tool_choice"} & set(run.bodies[1])
    assert run.ended.end is EndReason.FINAL
    assert [record.turn for record in run.ended.turns] == [0, 0]
    assert run.ended.turns[0].failure == build_no_tool_support_error()


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (ExchangeError("auth", "bad key", 401), {"fallback_retry_count": 1}),
        (ExchangeError("rate_limit", "slow down", 429, retryable=True), {"fallback_retry_count": 1}),
        (build_no_tool_support_error(), {"fallback_retry_count": 0}),
        (build_no_tool_support_error(), {"fallback_retry_count": 1, "tool_use_mode": "enforced"}),
        (build_no_tool_support_error(), {"fallback_retry_count": 1, "tool_use_mode": "disabled"}),
    ],
)
def test_run_loop_other_provider_error_ends_run_and_keeps_history(error: ExchangeError, policy: dict[str, Any]) -> None:
    run = run_script(build_plan(**policy), [error])
    assert (run.ended.end, run.ended.error) == (EndReason.PROVIDER_ERROR, error)
    assert run.ended.message == error.message
    assert run.ended.history == ({"role": "user", "content": "Go."},)
    assert run.ended.turns[0].failure == error


def test_run_loop_later_provider_error_keeps_earlier_turns() -> None:
    run = run_script(build_plan(), [GET_CALL, ExchangeError("upstream_5xx", "down", 503)])
    assert [message["role"] for message in run.ended.history] == ["user", "assistant", "tool"]
    assert run.ended.usage.input_tokens == 10


def test_run_loop_retries_without_tools_only_once() -> None:
    run = run_script(build_plan(fallback_retry_count=2), [build_no_tool_support_error(), build_no_tool_support_error()])
    assert (run.ended.end, len(run.bodies)) == (EndReason.PROVIDER_ERROR, 2)


# stops


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (StopReason.DEADLINE, EndReason.DEADLINE_EXCEEDED),
        (StopReason.CANCELLED, EndReason.CANCELLED),
        (StopReason.BUDGET, EndReason.BUDGET_SPENT),
    ],
)
def test_run_loop_stopped_before_answer_keeps_earlier_turns(reason: StopReason, end: EndReason) -> None:
    run = run_script(build_plan(), [GET_CALL, StopRun(reason)])
    assert run.ended.end is end
    assert run.ended.message
    assert [record.answer is None for record in run.ended.turns] == [False, True]
    assert run.ended.usage.input_tokens == 10
    assert len(run.ended.history) == 3


def test_run_loop_stopped_before_results_keeps_refused_results() -> None:
    loop = run_loop(build_plan(), lambda _: None)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(build_calling_answer(build_call(call_id="a"), build_call("nope", call_id="b")))
    loop.send(ask.decoder.close())
    with pytest.raises(StopIteration) as stopped:
        loop.send(StopRun(StopReason.CANCELLED))
    ended = stopped.value.value
    assert ended.end is EndReason.CANCELLED
    assert [result.call.id for result in ended.turns[0].results] == ["b"]


def test_run_loop_wrong_input_for_request_raises_type_error() -> None:
    loop = run_loop(build_plan(), lambda _: None)
    next(loop)
    with pytest.raises(TypeError, match="Ask"):
        loop.send(())


# plan and history


def test_run_loop_leaves_plan_unchanged_and_continues_history() -> None:
    history = ({"content": "Earlier."}, "And this.", {"role": "assistant", "content": "Yes.", "x": {"y": [1]}})
    options = {"provider": {"order": ["a"]}}
    plan = LoopPlan("m-1", Policy(), "S", "Go.", history, TOOLS, options, 7)
    before = copy.deepcopy((plan.history, plan.options, plan.policy))
    run = run_script(plan, [GET_CALL, DONE])
    assert (plan.history, plan.options, plan.policy) == before
    assert [message["role"] for message in run.ended.history][:4] == ["user", "user", "assistant", "user"]
    assert run.ended.history[2] is not history[2]
    assert run.bodies[0]["seed"] == 7


@pytest.mark.parametrize("text", ["", " \n"])
def test_run_loop_blank_user_text_adds_no_message(text: str) -> None:
    run = run_script(replace(build_plan(text), history=("Hello.",)), [DONE])
    assert run.bodies[0]["messages"] == [{"role": "user", "content": "Hello."}]


def test_run_loop_keeps_message_transform_out_of_history() -> None:
    name = "assistant_tool_calls_reasoning_content_empty_if_missing"
    run = run_script(build_plan(message_transforms=name), [GET_CALL, DONE])
    assert run.bodies[1]["messages"][1]["reasoning_content"] == ""
    assert all("reasoning_content" not in message for message in run.ended.history)
    assert run.ended.turns[1].request.changes[0].name == name


def test_run_loop_returns_hostile_text_to_the_model_unchanged() -> None:
    hostile = "<script>\x00\ud800 " + "[" * 1000
    run = run_script(build_plan(), [build_answer(hostile, calls=[build_call(arguments='{"a":"\\ud800"}')]), DONE])
    assert run.bodies[1]["messages"][1]["content"] == hostile


def test_run_loop_generates_distinct_ids_and_keeps_endpoint_ids() -> None:
    function_call_answer = build_answer(
        None, finish="function_call", function_call={"name": "state_get", "arguments": "{}"}
    )
    plan = build_plan(response_transforms=["assistant_function_call_to_tool_calls"])
    run = run_script(
        plan,
        [
            function_call_answer,
            function_call_answer,
            build_calling_answer(build_call(call_id="c1")),
            build_calling_answer(build_call(call_id="c1")),
            function_call_answer,
            DONE,
        ],
    )
    assert [call.id for call in run.ran] == ["call_1", "call_1__2", "c1", "c1", "call_1__3"]
    result_ids = [message["tool_call_id"] for message in run.ended.history if message["role"] == "tool"]
    assert result_ids == [call.id for call in run.ran]


# other methods


def test_run_loop_with_text_json_executes_calls_in_text() -> None:
    answer = build_answer('```json\n{"name": "state_get", "arguments": {}}\n```')
    run = run_script(build_plan(method="text_json"), [answer, DONE])
    assert [call.name for call in run.ran] == ["state_get"]
    assert "tools" not in run.bodies[0]
    assert all(message["role"] != "tool" for message in run.bodies[1]["messages"])
    assert run.ended.turns[0].answer is not None
    assert run.ended.turns[0].answer.method_used == "json_fallback"


def test_run_loop_with_constrained_method_reads_calls_and_final_text() -> None:
    run = run_script(
        build_plan(method="constrained"),
        [build_answer('{"name": "state_get", "arguments": {}}'), build_answer('{"final": "Done."}')],
    )
    assert (len(run.ran), run.ended.final_text) == (1, "Done.")
    assert "response_format" in run.bodies[0]


@pytest.mark.parametrize(("method", "call_id"), [("text_json", "text_call_1"), ("constrained", "constrained_call_1")])
def test_run_loop_with_call_in_text_gives_id_that_history_lacks(method: str, call_id: str) -> None:
    calling = {"role": "assistant", "content": None, "tool_calls": [build_call(call_id=call_id)]}
    history = ("Hello.", calling, {"role": "tool", "tool_call_id": call_id, "content": "{}"})
    run = run_script(
        replace(build_plan(method=method), history=history),
        [build_answer('{"name": "state_get", "arguments": {}}'), DONE],
    )
    assert [call.id for call in run.ran] == [f"{call_id}__2"]


def test_run_loop_without_tools_sends_only_model_and_messages() -> None:
    run = run_script(LoopPlan("m-1", resolve_policy([]).policy, "", "Hi."), [DONE])
    assert run.bodies == [{"model": "m-1", "messages": [{"role": "user", "content": "Hi."}]}]


def test_constrained_first_answer_must_call_only_in_enforced_mode() -> None:
    """Allow a final text in enforced mode only after a call, and in relaxed mode at once."""
    script = [build_answer('{"name": "state_get", "arguments": {}}'), build_answer('{"final": "Done."}')]
    enforced = run_script(build_plan(method="constrained", tool_use_mode="enforced"), script)
    assert ['"final"' in json.dumps(body["response_format"]) for body in enforced.bodies] == [False, True]
    relaxed = run_script(build_plan(method="constrained", tool_use_mode="relaxed"), script)
    assert '"final"' in json.dumps(relaxed.bodies[0]["response_format"])
