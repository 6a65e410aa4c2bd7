"""A run over several of the user's messages."""

from dataclasses import replace

from tests.engine.scripted_model import (
    build_answer,
    build_call,
    build_calling_answer,
    build_no_tool_support_error,
    build_plan,
    run_script,
)
from toolbench.engine.events import EndReason
from toolbench.engine.loop.run_state import FurtherMessage
from toolbench.engine.tools.definitions import ToolDefinition

GET_CALL = build_calling_answer(build_call())
DONE = build_answer()


def test_next_user_message_follows_each_answer_with_own_tools_and_turns() -> None:
    later = ToolDefinition("later", "Comes later.", {"type": "object"})
    further = (FurtherMessage("And then?", (later,)), FurtherMessage("Thanks."))
    played = run_script(
        replace(build_plan(max_turns=2), further_messages=further),
        [GET_CALL, DONE, build_calling_answer(build_call("later")), DONE, build_answer("Bye.")],
    )

    assert (played.ended.end, played.ended.final_text) == (EndReason.FINAL, "Bye.")
    assert [call.name for call in played.ran] == ["state_get", "later"]
    requests = [record.request for record in played.ended.turns]
    assert [(request.turn, request.message_index, request.user_message) for request in requests] == [
        (0, 0, ""),
        (1, 0, ""),
        (2, 1, "And then?"),
        (3, 1, ""),
        (4, 2, "Thanks."),
    ]
    assert [len(body["tools"]) for body in played.bodies] == [2, 2, 3, 3, 3]
    assert [body["content"] for body in played.bodies[-1]["messages"] if body["role"] == "user"] == [
        "Go.",
        "And then?",
        "Thanks.",
    ]


def test_message_using_up_its_turns_ends_run_before_next_one() -> None:
    played = run_script(replace(build_plan(max_turns=1), further_messages=(FurtherMessage("And then?"),)), [GET_CALL])
    assert played.ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_a_message_is_said_once_where_its_turn_is_asked_for_again() -> None:
    played = run_script(
        replace(build_plan(fallback_retry_count=1), further_messages=(FurtherMessage("And then?"),)),
        [DONE, build_no_tool_support_error(), build_answer("Bye.")],
    )
    assert [(turn.request.turn, turn.request.user_message) for turn in played.ended.turns] == [
        (0, ""),
        (1, "And then?"),
        (1, ""),
    ]


def test_calls_for_first_message_keep_blank_next_answer_from_empty_final() -> None:
    played = run_script(
        replace(build_plan(), further_messages=(FurtherMessage("Say nothing."),)), [GET_CALL, DONE, build_answer("")]
    )
    assert (played.ended.end, played.ended.final_text, len(played.bodies)) == (EndReason.FINAL, "", 3)
