"""A blank answer is asked again, once and without tools."""

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
def test_a_blank_answer_after_calls_is_asked_again_without_tools(text: str) -> None:
    played = run_script(build_plan(), [GET_CALL, build_answer(text), DONE])
    assert played.ended.final_text == "Done."
    assert "tools" not in played.bodies[2]
    assert played.bodies[2]["messages"][-1] == {"role": "user", "content": "Please provide your final answer."}
    assert played.bodies[2]["messages"][-2] == {"role": "assistant", "content": text}
    assert played.list_event_data("fix_empty_final") == [{"disable_tools": True, "user_text_bytes": 33}]


def test_the_text_can_be_changed_and_the_tools_kept() -> None:
    changed = build_plan(fix_empty_final_disable_tools=False, fix_empty_final_user_text="Well?")
    played = run_script(changed, [GET_CALL, BLANK, GET_CALL, DONE])
    assert "tools" in played.bodies[2]
    assert played.bodies[2]["messages"][-1]["content"] == "Well?"
    assert len(played.ran) == 2


def test_a_second_blank_answer_is_accepted() -> None:
    played = run_script(build_plan(), [GET_CALL, BLANK, build_answer(" \n")])
    assert (played.ended.end, played.ended.final_text) == (EndReason.FINAL, " \n")
    assert len(played.bodies) == 3


def test_a_second_blank_answer_still_meets_the_enforcement() -> None:
    played = run_script(build_plan(tool_use_mode="enforced"), [GET_CALL, BLANK, BLANK], return_failure)
    assert played.ended.end is EndReason.TOOL_ERROR


def test_a_blank_first_answer_is_not_asked_again() -> None:
    played = run_script(build_plan(), [BLANK])
    assert (played.ended.end, len(played.bodies)) == (EndReason.FINAL, 1)


def test_asking_again_can_be_switched_off() -> None:
    assert len(run_script(build_plan(fix_empty_final=False), [GET_CALL, BLANK]).bodies) == 2


def test_asking_again_takes_one_of_the_turns() -> None:
    assert run_script(build_plan(max_turns=2), [GET_CALL, BLANK]).ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_calls_in_final_answer_are_ignored_if_tools_are_off() -> None:
    played = run_script(build_plan(), [GET_CALL, BLANK, build_answer("", calls=[build_call()])])
    assert (played.ended.end, len(played.ran)) == (EndReason.FINAL, 1)


def test_turn_after_second_request_offers_tools_only_if_kept() -> None:
    kept = run_script(build_plan(fix_empty_final_disable_tools=False), [GET_CALL, BLANK, GET_CALL, DONE])
    assert ["tools" in sent for sent in kept.bodies] == [True] * 4
