"""Tests of the second request after a blank answer, which is sent once and without tools."""

import pytest

from tests.engine.scripted_model import (
    build_answer,
    build_call,
    build_calling_answer,
    build_plan,
    return_failure,
    run_script,
)
from toolbench.engine.events import EndReason

GET_CALL = build_calling_answer(build_call())
PATCH_CALL = build_calling_answer(build_call("state_patch", '{"ops":[{"op":"set"}]}'))
DONE = build_answer()
BLANK = build_answer("")


@pytest.mark.parametrize("text", ["", "\u200b", "\u3164"])
def test_blank_answer_after_calls_is_requested_again_without_tools(text: str) -> None:
    run = run_script(build_plan(), [GET_CALL, build_answer(text), DONE])
    assert run.ended.final_text == "Done."
    assert "tools" not in run.bodies[2]
    assert run.bodies[2]["messages"][-1] == {"role": "user", "content": "Please provide your final answer."}
    assert run.bodies[2]["messages"][-2] == {"role": "assistant", "content": text}
    assert run.list_event_data("fix_empty_final") == [{"disable_tools": True, "user_text_bytes": 33}]


def test_blank_answer_policy_can_change_text_and_keep_tools() -> None:
    plan = build_plan(fix_empty_final_disable_tools=False, fix_empty_final_user_text="Well?")
    run = run_script(plan, [GET_CALL, BLANK, GET_CALL, DONE])
    assert "tools" in run.bodies[2]
    assert run.bodies[2]["messages"][-1]["content"] == "Well?"
    assert len(run.ran) == 2


def test_second_blank_answer_is_final() -> None:
    run = run_script(build_plan(), [GET_CALL, BLANK, build_answer(" \n")])
    assert (run.ended.end, run.ended.final_text) == (EndReason.FINAL, " \n")
    assert len(run.bodies) == 3


def test_second_blank_answer_in_enforced_mode_reports_tool_errors() -> None:
    run = run_script(build_plan(tool_use_mode="enforced"), [GET_CALL, BLANK, BLANK], return_failure)
    assert run.ended.end is EndReason.TOOL_ERROR


def test_blank_first_answer_is_not_requested_again() -> None:
    run = run_script(build_plan(), [BLANK])
    assert (run.ended.end, len(run.bodies)) == (EndReason.FINAL, 1)


def test_blank_answer_is_final_if_policy_turns_fix_off() -> None:
    assert len(run_script(build_plan(fix_empty_final=False), [GET_CALL, BLANK]).bodies) == 2


def test_request_after_blank_answer_counts_as_a_turn() -> None:
    assert run_script(build_plan(max_turns=2), [GET_CALL, BLANK]).ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_calls_in_answer_to_request_without_tools_are_not_executed() -> None:
    run = run_script(build_plan(), [GET_CALL, BLANK, build_answer("", calls=[build_call()])])
    assert (run.ended.end, len(run.ran)) == (EndReason.FINAL, 1)


def test_turns_after_blank_answer_offer_tools_if_policy_keeps_them() -> None:
    kept = run_script(build_plan(fix_empty_final_disable_tools=False), [GET_CALL, BLANK, GET_CALL, DONE])
    assert ["tools" in body for body in kept.bodies] == [True] * 4
