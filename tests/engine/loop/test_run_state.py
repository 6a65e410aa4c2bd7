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


def test_what_the_user_says_next_follows_each_answer_with_its_tools_and_turns_of_its_own() -> None:
    later = ToolDefinition("later", "Comes later.", {"type": "object"})
    further = (FurtherMessage("And then?", (later,)), FurtherMessage("Thanks."))
    played = run_script(
        replace(build_plan(max_turns=2), further=further),
        [GET_CALL, DONE, build_calling_answer(build_call("later")), DONE, build_answer("Bye.")],
    )

    assert (played.ended.end, played.ended.final_text) == (EndReason.FINAL, "Bye.")
    assert [one.name for one in played.ran] == ["state_get", "later"]
    requests = [record.request for record in played.ended.turns]
    assert [(one.turn, one.message, one.said) for one in requests] == [
        (0, 0, ""),
        (1, 0, ""),
        (2, 1, "And then?"),
        (3, 1, ""),
        (4, 2, "Thanks."),
    ]
    assert [len(body["tools"]) for body in played.bodies] == [2, 2, 3, 3, 3]
    assert [one["content"] for one in played.bodies[-1]["messages"] if one["role"] == "user"] == [
        "Go.",
        "And then?",
        "Thanks.",
    ]


def test_a_message_that_uses_up_its_turns_ends_the_run_before_the_next_one_is_said() -> None:
    played = run_script(replace(build_plan(max_turns=1), further=(FurtherMessage("And then?"),)), [GET_CALL])
    assert played.ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_a_message_is_said_once_where_its_turn_is_asked_for_again() -> None:
    played = run_script(
        replace(build_plan(fallback_retry_count=1), further=(FurtherMessage("And then?"),)),
        [DONE, build_no_tool_support_error(), build_answer("Bye.")],
    )
    assert [(one.request.turn, one.request.said) for one in played.ended.turns] == [(0, ""), (1, "And then?"), (1, "")]


def test_calls_for_one_message_make_a_blank_answer_to_the_next_no_empty_final() -> None:
    played = run_script(
        replace(build_plan(), further=(FurtherMessage("Say nothing."),)), [GET_CALL, DONE, build_answer("")]
    )
    assert (played.ended.end, played.ended.final_text, len(played.bodies)) == (EndReason.FINAL, "", 3)
