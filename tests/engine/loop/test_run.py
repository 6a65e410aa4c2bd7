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
BLANK = build_answer("")


def codes(played: LoopRun) -> list[str]:
    return [error["code"] for envelope in played.tool_envelopes() for error in envelope["errors"]]


def test_calls_run_and_results_return_until_final_answer() -> None:
    played = run_script(build_plan(system="S"), [GET_CALL, PATCH_CALL, DONE])
    assert played.ended.end is EndReason.FINAL
    assert played.ended.final_text == "Done."
    assert [call.name for call in played.ran] == ["state_get", "state_patch"]
    assert [message["role"] for message in played.bodies[2]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [message["role"] for message in played.ended.history][-1] == "assistant"
    assert [record.turn for record in played.ended.turns] == [0, 1, 2]


def test_final_answer_cut_at_token_limit_has_own_end_with_text() -> None:
    played = run_script(build_plan(), [GET_CALL, build_answer("Almost d", finish="length")])
    assert (played.ended.end, played.ended.final_text) == (EndReason.LENGTH, "Almost d")
    uncalled = run_script(build_plan(tool_use_mode="enforced"), [build_answer("Almost d", finish="length")])
    assert uncalled.ended.end is EndReason.NO_TOOL_CALLS


def test_several_calls_of_one_answer_get_their_results_in_call_order() -> None:
    raw = build_calling_answer(
        build_call(call_id="a"), build_call("nope", call_id="b"), build_call("state_patch", '{"ops":[]}', call_id="c")
    )
    played = run_script(build_plan(), [raw, DONE])
    tool_messages = [message for message in played.ended.history if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in tool_messages] == ["a", "b", "c"]
    assert [call.id for call in played.ran] == ["a", "c"]
    assert [result.was_executed for result in played.ended.turns[0].results] == [True, False, True]


def test_usage_is_summed_over_the_turns() -> None:
    assert run_script(build_plan(), [GET_CALL, DONE]).ended.usage == Usage(20, 4)


# limits


def test_too_many_turns_end_the_run_with_everything_kept() -> None:
    played = run_script(build_plan(max_turns=2), [GET_CALL, GET_CALL])
    assert played.ended.end is EndReason.MAX_TURNS_EXCEEDED
    assert len(played.ended.turns) == 2
    assert len(played.ended.history) == 5
    assert played.ended.usage.input_tokens == 20
    assert played.ended.final_text == ""


def test_parallel_off_keeps_one_call_per_turn() -> None:
    raw = build_calling_answer(build_call(call_id="a"), build_call(call_id="b"))
    played = run_script(build_plan(request_overrides={"parallel_tool_calls": False}), [raw, DONE])
    assert len(played.ran) == 1
    assert played.list_event_data("llm_request_end")[0]["ignored_tool_calls_count"] == 1


@pytest.mark.parametrize("arguments", ['{"a":"' + "x" * 300 + '"}', {"a": "x" * 300}])
def test_arguments_too_large_are_refused_and_the_loop_goes_on(arguments: Any) -> None:
    played = run_script(
        build_plan(max_tool_args_bytes=300), [build_calling_answer(build_call(arguments=arguments)), DONE]
    )
    assert (codes(played), played.ran) == (["ARGUMENTS_TOO_LARGE"], [])
    assert played.ended.end is EndReason.FINAL


def test_an_output_too_large_is_replaced() -> None:
    played = run_script(build_plan(max_tool_output_bytes=200), [GET_CALL, DONE], lambda _: Outcome({"text": "x" * 500}))
    assert codes(played) == ["TOOL_OUTPUT_TOO_LARGE"]
    assert played.ended.turns[0].results[0].is_output_replaced


def test_unreadable_arguments_are_told_to_the_model_and_the_loop_goes_on() -> None:
    played = run_script(build_plan(), [build_calling_answer(build_call(arguments='{"a": "cut')), DONE])
    assert (codes(played), played.ran) == (["ARGUMENTS_JSON_PARSE_ERROR"], [])


def test_a_call_that_breaks_its_schema_is_told_as_an_argument_error() -> None:
    played = run_script(
        build_plan(), [build_calling_answer(build_call("state_patch", '{"ops":"set"}')), PATCH_CALL, DONE]
    )
    assert codes(played) == ["ARGUMENT_ERROR"]
    assert "$.ops" in played.tool_envelopes()[0]["errors"][0]["message"]
    assert len(played.ran) == 1


# modes


def test_disabled_sends_no_tools_and_runs_no_call() -> None:
    played = run_script(build_plan(tool_use_mode="disabled"), [build_answer("Done.", calls=[build_call()])])
    assert "tools" not in played.bodies[0]
    assert (played.ran, played.ended.end) == ([], EndReason.FINAL)
    assert played.ended.turns[0].answer is not None
    assert played.ended.turns[0].answer.ignored_call_count == 1
    assert "tool_calls" not in played.ended.history[-1]


def test_relaxed_accepts_an_answer_without_calls() -> None:
    assert run_script(build_plan(tool_use_mode="relaxed"), [DONE]).ended.end is EndReason.FINAL


def test_enforced_wants_a_call() -> None:
    played = run_script(build_plan(tool_use_mode="enforced"), [DONE])
    assert played.ended.end is EndReason.NO_TOOL_CALLS
    assert played.ended.final_text == "Done."


def test_enforced_and_fatal_names_the_tools_that_failed_to_the_end() -> None:
    played = run_script(
        build_plan(tool_use_mode="enforced"),
        [PATCH_CALL, GET_CALL, build_calling_answer(build_call("nope")), DONE],
        return_failure,
    )
    assert played.ended.end is EndReason.TOOL_ERROR
    assert played.ended.failed_tools == ("nope", "state_get", "state_patch")
    assert len(played.ended.turns) == 4


def test_fatal_is_healed_by_a_later_success_of_the_same_tool() -> None:
    played = run_script(
        build_plan(tool_use_mode="enforced"),
        [GET_CALL, GET_CALL, GET_CALL, DONE],
        use_in_order(return_failure, return_failure, return_success),
    )
    assert played.ended.end is EndReason.FINAL


def test_fatal_is_not_healed_by_another_tool() -> None:
    played = run_script(
        build_plan(tool_use_mode="enforced"), [PATCH_CALL, GET_CALL, DONE], use_in_order(return_failure, return_success)
    )
    assert played.ended.failed_tools == ("state_patch",)


def test_fatal_looks_at_the_latest_result() -> None:
    played = run_script(
        build_plan(tool_use_mode="enforced"), [GET_CALL, GET_CALL, DONE], use_in_order(return_success, return_failure)
    )
    assert played.ended.failed_tools == ("state_get",)


def test_a_refused_call_is_healed_under_the_tools_own_name() -> None:
    dotted = build_calling_answer(build_call("state.patch", '{"ops":1}'))
    assert run_script(build_plan(tool_use_mode="enforced"), [dotted, PATCH_CALL, DONE]).ended.end is EndReason.FINAL


def test_an_unknown_tool_stays_fatal() -> None:
    played = run_script(
        build_plan(tool_use_mode="enforced"), [build_calling_answer(build_call("nope")), GET_CALL, DONE]
    )
    assert played.ended.failed_tools == ("nope",)


def test_tolerated_wants_one_success() -> None:
    policy: dict[str, Any] = {"tool_use_mode": "enforced", "tool_failure_policy": "tolerated"}
    assert (
        run_script(build_plan(**policy), [build_calling_answer(build_call("nope")), GET_CALL, DONE]).ended.end
        is EndReason.FINAL
    )
    assert (
        run_script(build_plan(**policy), [build_calling_answer(build_call("nope")), DONE]).ended.end
        is EndReason.TOOL_ERROR
    )


def test_failures_do_not_matter_outside_the_enforced_mode() -> None:
    assert run_script(build_plan(), [GET_CALL, DONE], return_failure).ended.end is EndReason.FINAL


def test_enforced_with_every_tool_masked_ends_without_calls() -> None:
    played = run_script(build_plan(tool_use_mode="enforced", tool_denylist="state_get,state_patch"), [DONE])
    assert "tools" not in played.bodies[0]
    assert played.ended.end is EndReason.NO_TOOL_CALLS


# the blank final answer


# endpoints that fail


def test_relaxed_falls_back_to_no_tools_where_the_endpoint_cannot_use_them() -> None:
    played = run_script(build_plan(fallback_retry_count=1), [build_no_tool_support_error(), DONE])
    assert played.bodies[0]["tool_choice"] == "auto"
    assert not {"tools", "tool_choice"} & set(played.bodies[1])
    assert played.ended.end is EndReason.FINAL
    assert [record.turn for record in played.ended.turns] == [0, 0]
    assert played.ended.turns[0].failure == build_no_tool_support_error()


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
def test_any_other_failure_ends_the_run_with_everything_kept(error: ExchangeError, policy: dict[str, Any]) -> None:
    played = run_script(build_plan(**policy), [error])
    assert (played.ended.end, played.ended.error) == (EndReason.PROVIDER_ERROR, error)
    assert played.ended.message == error.message
    assert played.ended.history == ({"role": "user", "content": "Go."},)
    assert played.ended.turns[0].failure == error


def test_a_failure_later_keeps_the_turns_before() -> None:
    played = run_script(build_plan(), [GET_CALL, ExchangeError("upstream_5xx", "down", 503)])
    assert [message["role"] for message in played.ended.history] == ["user", "assistant", "tool"]
    assert played.ended.usage.input_tokens == 10


def test_falling_back_twice_is_no_use() -> None:
    played = run_script(
        build_plan(fallback_retry_count=2), [build_no_tool_support_error(), build_no_tool_support_error()]
    )
    assert (played.ended.end, len(played.bodies)) == (EndReason.PROVIDER_ERROR, 2)


# being stopped


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (StopReason.DEADLINE, EndReason.DEADLINE_EXCEEDED),
        (StopReason.CANCELLED, EndReason.CANCELLED),
        (StopReason.BUDGET, EndReason.BUDGET_SPENT),
    ],
)
def test_a_stop_instead_of_an_answer_keeps_everything(reason: StopReason, end: EndReason) -> None:
    played = run_script(build_plan(), [GET_CALL, StopRun(reason)])
    assert played.ended.end is end
    assert played.ended.message
    assert [record.answer is None for record in played.ended.turns] == [False, True]
    assert played.ended.usage.input_tokens == 10
    assert len(played.ended.history) == 3


def test_a_stop_instead_of_results_keeps_the_refused_calls_results() -> None:
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


def test_what_does_not_answer_the_question_is_a_mistake_of_the_driver() -> None:
    loop = run_loop(build_plan(), lambda _: None)
    next(loop)
    with pytest.raises(TypeError, match="Ask"):
        loop.send(())


# what is given stays as it is


def test_nothing_of_the_plan_is_changed_and_history_is_continued() -> None:
    history = ({"content": "Earlier."}, "And this.", {"role": "assistant", "content": "Yes.", "x": {"y": [1]}})
    options = {"provider": {"order": ["a"]}}
    given = LoopPlan("m-1", Policy(), "S", "Go.", history, TOOLS, options, 7)
    before = copy.deepcopy((given.history, given.options, given.policy))
    played = run_script(given, [GET_CALL, DONE])
    assert (given.history, given.options, given.policy) == before
    assert [message["role"] for message in played.ended.history][:4] == ["user", "user", "assistant", "user"]
    assert played.ended.history[2] is not history[2]
    assert played.bodies[0]["seed"] == 7


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_user_text_adds_no_message(text: str) -> None:
    played = run_script(replace(build_plan(text), history=("Hello.",)), [DONE])
    assert played.bodies[0]["messages"] == [{"role": "user", "content": "Hello."}]


def test_a_message_transform_does_not_leak_into_the_history() -> None:
    name = "assistant_tool_calls_reasoning_content_empty_if_missing"
    played = run_script(build_plan(message_transforms=name), [GET_CALL, DONE])
    assert played.bodies[1]["messages"][1]["reasoning_content"] == ""
    assert all("reasoning_content" not in message for message in played.ended.history)
    assert played.ended.turns[1].request.changes[0].name == name


def test_an_answer_with_hostile_text_goes_back_as_it_came() -> None:
    hostile = "<script>\x00\ud800 " + "[" * 1000
    played = run_script(build_plan(), [build_answer(hostile, calls=[build_call(arguments='{"a":"\\ud800"}')]), DONE])
    assert played.bodies[1]["messages"][1]["content"] == hostile


def test_made_ids_differ_in_every_turn_and_endpoint_ids_are_kept() -> None:
    legacy = build_answer(None, finish="function_call", function_call={"name": "state_get", "arguments": "{}"})
    given = build_plan(response_transforms=["assistant_function_call_to_tool_calls"])
    played = run_script(
        given,
        [
            legacy,
            legacy,
            build_calling_answer(build_call(call_id="c1")),
            build_calling_answer(build_call(call_id="c1")),
            legacy,
            DONE,
        ],
    )
    assert [call.id for call in played.ran] == ["call_1", "call_1__2", "c1", "c1", "call_1__3"]
    answered = [message["tool_call_id"] for message in played.ended.history if message["role"] == "tool"]
    assert answered == [call.id for call in played.ran]


# other ways of asking


def test_text_json_runs_calls_written_into_the_text() -> None:
    said = build_answer('```json\n{"name": "state_get", "arguments": {}}\n```')
    played = run_script(build_plan(method="text_json"), [said, DONE])
    assert [call.name for call in played.ran] == ["state_get"]
    assert "tools" not in played.bodies[0]
    assert all(message["role"] != "tool" for message in played.bodies[1]["messages"])
    assert played.ended.turns[0].answer is not None
    assert played.ended.turns[0].answer.method_used == "json_fallback"


def test_constrained_runs_calls_and_reads_the_final_answer() -> None:
    played = run_script(
        build_plan(method="constrained"),
        [build_answer('{"name": "state_get", "arguments": {}}'), build_answer('{"final": "Done."}')],
    )
    assert (len(played.ran), played.ended.final_text) == (1, "Done.")
    assert "response_format" in played.bodies[0]


def test_a_plan_without_tools_sends_model_and_messages_only() -> None:
    played = run_script(LoopPlan("m-1", resolve_policy([]).policy, "", "Hi."), [DONE])
    assert played.bodies == [{"model": "m-1", "messages": [{"role": "user", "content": "Hi."}]}]


def test_constrained_first_answer_must_call_only_if_run_needs_call() -> None:
    """Enforced and constrained: no other first answer can be written; once a call was made, a final text can."""
    script = [build_answer('{"name": "state_get", "arguments": {}}'), build_answer('{"final": "Done."}')]
    enforced = run_script(build_plan(method="constrained", tool_use_mode="enforced"), script)
    assert ['"final"' in json.dumps(body["response_format"]) for body in enforced.bodies] == [False, True]
    relaxed = run_script(build_plan(method="constrained", tool_use_mode="relaxed"), script)
    assert '"final"' in json.dumps(relaxed.bodies[0]["response_format"])
