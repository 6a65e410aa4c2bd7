"""Tests of requests that the loop adds: further user messages, re-prompts and retries without tools."""

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import (
    GET_TOOL,
    build_answer,
    build_call,
    build_calling_answer,
    build_no_tool_support_error,
    build_plan,
    run_script,
)
from toolbench.engine.events import Ask, EndReason, Execute, Outcome
from toolbench.engine.loop.run import run_loop
from toolbench.engine.loop.run_state import FurtherMessage
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry

GET_CALL = build_calling_answer(build_call())
DONE = build_answer()
CALL_IN_TEXT = build_answer("state_get()")
LATER = ToolDefinition("later", "Comes later.", {"type": "object"})
FURTHER = (FurtherMessage("And then?", (LATER,)), FurtherMessage("Thanks."))


def test_further_message_adds_its_tools_and_is_sent_once() -> None:
    run = run_script(replace(build_plan(), further_messages=FURTHER), [DONE, GET_CALL, DONE, DONE])
    assert [len(body["tools"]) for body in run.bodies] == [2, 3, 3, 3]
    requests = [record.request for record in run.ended.turns]
    assert [(request.turn, request.message_index, request.user_message) for request in requests] == [
        (0, 0, ""),
        (1, 1, "And then?"),
        (2, 1, ""),
        (3, 2, "Thanks."),
    ]


def test_further_message_has_its_own_turn_limit() -> None:
    plan = replace(build_plan(max_turns=2), further_messages=FURTHER)
    run = run_script(plan, [GET_CALL, DONE, GET_CALL, DONE, GET_CALL, DONE])
    assert (run.ended.end, len(run.bodies)) == (EndReason.FINAL, 6)
    short = run_script(plan, [DONE, GET_CALL, GET_CALL])
    assert (short.ended.end, len(short.bodies)) == (EndReason.MAX_TURNS_EXCEEDED, 3)


def test_blank_answer_to_further_message_is_requested_again() -> None:
    script = [GET_CALL, build_answer(""), DONE, GET_CALL, build_answer(""), DONE]
    run = run_script(replace(build_plan(), further_messages=(FurtherMessage("And then?"),)), script)
    assert (len(run.bodies), len(run.list_event_data("fix_empty_final"))) == (6, 2)


def test_blank_answer_to_further_message_without_calls_is_final() -> None:
    run = run_script(
        replace(build_plan(), further_messages=(FurtherMessage("Say nothing."),)), [GET_CALL, DONE, build_answer("")]
    )
    assert (run.ended.final_text, len(run.bodies), run.list_event_data("fix_empty_final")) == ("", 3, [])


def test_reprompt_for_unexecuted_call_is_sent_once() -> None:
    run = run_script(build_plan(repair_request=True), [CALL_IN_TEXT, CALL_IN_TEXT])
    assert (len(run.bodies), run.ended.reprompt_count, run.ended.end) == (2, 1, EndReason.FINAL)
    assert [event["ask_again"] for event in run.list_event_data("tool_not_executed")] == [True]


def test_reprompt_is_not_sent_without_policy() -> None:
    run = run_script(build_plan(), [CALL_IN_TEXT])
    assert (len(run.bodies), run.ended.reprompt_count) == (1, 0)


@pytest.mark.parametrize(("turns", "requests"), [(1, 1), (2, 2), (3, 2)])
def test_reprompt_is_sent_only_if_a_turn_is_left(turns: int, requests: int) -> None:
    run = run_script(build_plan(repair_request=True, max_turns=turns), [CALL_IN_TEXT, DONE])
    assert (len(run.bodies), run.ended.reprompt_count) == (requests, requests - 1)


def test_reprompt_is_not_sent_without_tools() -> None:
    run = run_script(build_plan(repair_request=True, tools=ToolRegistry()), [CALL_IN_TEXT])
    assert (len(run.bodies), run.ended.reprompt_count) == (1, 0)


def test_retry_without_tools_counts_down_attempts_left() -> None:
    run = run_script(build_plan(fallback_retry_count=2), [build_no_tool_support_error(), DONE])
    assert [event["request_attempts_left"] for event in run.list_event_data("llm_request_retry")] == [1]
    assert [event["request_attempts_left"] for event in run.list_event_data("llm_request_start")] == [2, 1]


@pytest.mark.parametrize("outcomes", [(), (Outcome(), Outcome()), [Outcome()], None])
def test_run_loop_refuses_other_input_than_one_outcome_per_call(outcomes: Any) -> None:
    loop = run_loop(build_plan(), lambda _: None)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(GET_CALL)
    assert isinstance(loop.send(ask.decoder.close()), Execute)
    with pytest.raises(TypeError, match="1 calls need as many outcomes"):
        loop.send(outcomes)


def test_final_event_is_emitted_only_for_accepted_answer() -> None:
    assert len(run_script(build_plan(), [DONE]).list_event_data("final")) == 1
    assert run_script(build_plan(tool_use_mode="enforced"), [DONE]).list_event_data("final") == []


def test_tools_of_further_message_are_refused_before_it() -> None:
    run = run_script(
        replace(build_plan(tools=ToolRegistry((GET_TOOL,))), further_messages=FURTHER[:1]),
        [build_calling_answer(build_call("later")), DONE, DONE],
    )
    assert [error["code"] for envelope in run.tool_envelopes() for error in envelope["errors"]] == ["TOOL_NOT_ALLOWED"]
