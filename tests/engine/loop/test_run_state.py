"""Tests of a run with several user messages."""

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


def test_further_messages_follow_answers_with_own_tools_and_turns() -> None:
    later = ToolDefinition("later", "Comes later.", {"type": "object"})
    further = (FurtherMessage("And then?", (later,)), FurtherMessage("Thanks."))
    run = run_script(
        replace(build_plan(max_turns=2), further_messages=further),
        [GET_CALL, DONE, build_calling_answer(build_call("later")), DONE, build_answer("Bye.")],
    )

    assert (run.ended.end, run.ended.final_text) == (EndReason.FINAL, "Bye.")
    assert [call.name for call in run.ran] == ["state_get", "later"]
    requests = [record.request for record in run.ended.turns]
    assert [(request.turn, request.message_index, request.user_message) for request in requests] == [
        (0, 0, ""),
        (1, 0, ""),
        (2, 1, "And then?"),
        (3, 1, ""),
        (4, 2, "Thanks."),
    ]
    assert [len(body["tools"]) for body in run.bodies] == [2, 2, 3, 3, 3]
    assert [body["content"] for body in run.bodies[-1]["messages"] if body["role"] == "user"] == [
        "Go.",
        "And then?",
        "Thanks.",
    ]


def test_message_at_its_turn_limit_ends_run_before_next_message() -> None:
    run = run_script(replace(build_plan(max_turns=1), further_messages=(FurtherMessage("And then?"),)), [GET_CALL])
    assert run.ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_further_message_is_sent_once_if_its_turn_is_retried() -> None:
    run = run_script(
        replace(build_plan(fallback_retry_count=1), further_messages=(FurtherMessage("And then?"),)),
        [DONE, build_no_tool_support_error(), build_answer("Bye.")],
    )
    assert [(turn.request.turn, turn.request.user_message) for turn in run.ended.turns] == [
        (0, ""),
        (1, "And then?"),
        (1, ""),
    ]


def test_blank_answer_counts_only_calls_of_its_own_message() -> None:
    run = run_script(
        replace(build_plan(), further_messages=(FurtherMessage("Say nothing."),)), [GET_CALL, DONE, build_answer("")]
    )
    assert (run.ended.end, run.ended.final_text, len(run.bodies)) == (EndReason.FINAL, "", 3)
