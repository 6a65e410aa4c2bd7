import pytest

from tests.engine.scripted_model import GET_TOOL, TOOLS, build_answer, build_call, build_calling_answer, run_script
from toolbench.engine.conversation import INCOMPLETE_ENDS, Conversation
from toolbench.engine.errors import PolicyError
from toolbench.engine.events import EndReason, LoopResult, StopReason, StopRun
from toolbench.engine.tools.choice import ToolChoice
from toolbench.engine.tools.definitions import ToolRegistry


def run_conversation(conversation: Conversation, text: str, *script: bytes | StopRun) -> LoopResult:
    """Run the loop once with the next user message and return how it ended."""
    return run_script(conversation.say(text), script).ended


def test_conversation_sends_messages_of_earlier_run_in_next_one() -> None:
    conversation = Conversation("m-1", TOOLS)

    first = run_conversation(conversation, "Read it.", build_calling_answer(build_call()), build_answer("Read."))
    assert conversation.take(first)
    second = run_script(conversation.say("And now?"), [build_answer("Nothing new.")])

    assert [message["role"] for message in second.bodies[0]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert second.bodies[0]["messages"][-1]["content"] == "And now?"


def test_conversation_say_changes_no_history_before_take() -> None:
    conversation = Conversation("m-1", TOOLS)

    assert conversation.say("One.").history == ()
    assert conversation.say("Two.").history == ()


def test_conversation_take_refuses_incomplete_run() -> None:
    """A call without its result would be refused by most endpoints."""
    conversation = Conversation("m-1", TOOLS)
    conversation.take(run_conversation(conversation, "Hello.", build_answer("Hello!")))
    before = conversation.history

    interrupted = run_conversation(
        conversation, "Read it.", build_calling_answer(build_call()), StopRun(StopReason.CANCELLED)
    )

    assert interrupted.end is EndReason.CANCELLED
    assert not conversation.take(interrupted)
    assert conversation.history == before


def test_incomplete_ends_exclude_only_complete_end_reasons() -> None:
    assert set(EndReason) - INCOMPLETE_ENDS == {
        EndReason.FINAL,
        EndReason.LENGTH,
        EndReason.NO_TOOL_CALLS,
        EndReason.TOOL_ERROR,
        EndReason.MAX_TURNS_EXCEEDED,
    }


def test_conversation_with_settings_accepts_only_policy_keys() -> None:
    conversation = Conversation.with_settings(
        "m-1", ToolRegistry((GET_TOOL,)), tool_choice=ToolChoice.named("state_get"), max_turns=3
    )

    assert conversation.policy.max_turns == 3
    assert conversation.policy.tool_choice == {"type": "function", "function": {"name": "state_get"}}
    with pytest.raises(PolicyError, match="max_turn: unknown key"):
        Conversation.with_settings("m-1", TOOLS, max_turn=3)
