"""Requests that a run makes of its own accord: a further message, a second sample, a turn without tools."""

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
WRITTEN_CALL = build_answer("state_get()")
LATER = ToolDefinition("later", "Comes later.", {"type": "object"})
FURTHER = (FurtherMessage("And then?", (LATER,)), FurtherMessage("Thanks."))


def test_each_message_brings_its_tools_and_its_text_once() -> None:
    played = run_script(replace(build_plan(), further_messages=FURTHER), [DONE, GET_CALL, DONE, DONE])
    assert [len(body["tools"]) for body in played.bodies] == [2, 3, 3, 3]
    requests = [record.request for record in played.ended.turns]
    assert [(request.turn, request.message_index, request.user_message) for request in requests] == [
        (0, 0, ""),
        (1, 1, "And then?"),
        (2, 1, ""),
        (3, 2, "Thanks."),
    ]


def test_each_message_has_all_its_turns_and_not_one_more() -> None:
    given = replace(build_plan(max_turns=2), further_messages=FURTHER)
    played = run_script(given, [GET_CALL, DONE, GET_CALL, DONE, GET_CALL, DONE])
    assert (played.ended.end, len(played.bodies)) == (EndReason.FINAL, 6)
    short = run_script(given, [DONE, GET_CALL, GET_CALL])
    assert (short.ended.end, len(short.bodies)) == (EndReason.MAX_TURNS_EXCEEDED, 3)


def test_a_blank_answer_to_a_further_message_is_asked_again_too() -> None:
    script = [GET_CALL, build_answer(""), DONE, GET_CALL, build_answer(""), DONE]
    played = run_script(replace(build_plan(), further_messages=(FurtherMessage("And then?"),)), script)
    assert (len(played.bodies), len(played.list_event_data("fix_empty_final"))) == (6, 2)


def test_a_blank_answer_without_calls_of_its_own_message_is_final() -> None:
    played = run_script(
        replace(build_plan(), further_messages=(FurtherMessage("Say nothing."),)), [GET_CALL, DONE, build_answer("")]
    )
    assert (played.ended.final_text, len(played.bodies), played.list_event_data("fix_empty_final")) == ("", 3, [])


def test_a_call_that_could_not_run_is_asked_for_once() -> None:
    played = run_script(build_plan(repair_request=True), [WRITTEN_CALL, WRITTEN_CALL])
    assert (len(played.bodies), played.ended.reprompt_count, played.ended.end) == (2, 1, EndReason.FINAL)
    assert [told["ask_again"] for told in played.list_event_data("tool_not_executed")] == [True]


def test_a_call_is_not_asked_for_unless_the_policy_says_so() -> None:
    played = run_script(build_plan(), [WRITTEN_CALL])
    assert (len(played.bodies), played.ended.reprompt_count) == (1, 0)


@pytest.mark.parametrize(("turns", "requests"), [(1, 1), (2, 2), (3, 2)])
def test_a_call_is_asked_for_only_while_a_turn_is_left(turns: int, requests: int) -> None:
    played = run_script(build_plan(repair_request=True, max_turns=turns), [WRITTEN_CALL, DONE])
    assert (len(played.bodies), played.ended.reprompt_count) == (requests, requests - 1)


def test_a_call_is_not_asked_for_where_no_tools_are_offered() -> None:
    played = run_script(build_plan(repair_request=True, tools=ToolRegistry()), [WRITTEN_CALL])
    assert (len(played.bodies), played.ended.reprompt_count) == (1, 0)


def test_a_retry_without_tools_counts_down_what_is_left() -> None:
    played = run_script(build_plan(fallback_retry_count=2), [build_no_tool_support_error(), DONE])
    assert [told["request_attempts_left"] for told in played.list_event_data("llm_request_retry")] == [1]
    assert [told["request_attempts_left"] for told in played.list_event_data("llm_request_start")] == [2, 1]


@pytest.mark.parametrize("sent", [(), (Outcome(), Outcome()), [Outcome()], None])
def test_calls_need_a_tuple_of_as_many_outcomes(sent: Any) -> None:
    loop = run_loop(build_plan(), lambda _: None)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(GET_CALL)
    assert isinstance(loop.send(ask.decoder.close()), Execute)
    with pytest.raises(TypeError, match="1 calls need as many outcomes"):
        loop.send(sent)


def test_only_an_answer_is_told_as_final() -> None:
    assert len(run_script(build_plan(), [DONE]).list_event_data("final")) == 1
    assert run_script(build_plan(tool_use_mode="enforced"), [DONE]).list_event_data("final") == []


def test_only_the_tools_of_the_first_message_are_offered_first() -> None:
    played = run_script(
        replace(build_plan(tools=ToolRegistry((GET_TOOL,))), further_messages=FURTHER[:1]),
        [build_calling_answer(build_call("later")), DONE, DONE],
    )
    assert [error["code"] for told in played.tool_envelopes() for error in told["errors"]] == ["TOOL_NOT_ALLOWED"]
