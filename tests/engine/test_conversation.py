import pytest

from tests.engine.scripted_model import GET_TOOL, TOOLS, build_answer, build_call, build_calling_answer, run_script
from toolbench.engine.conversation import INCOMPLETE_ENDS, Conversation
from toolbench.engine.errors import PolicyError
from toolbench.engine.events import EndReason, LoopResult, StopReason, StopRun
from toolbench.engine.tools.choice import ToolChoice
from toolbench.engine.tools.definitions import ToolRegistry


def ended(conversation: Conversation, text: str, *script: bytes | StopRun) -> LoopResult:
    """What one run of the loop over the conversation comes to."""
    return run_script(conversation.say(text), script).ended


def test_what_was_said_called_and_answered_is_there_the_next_time() -> None:
    conversation = Conversation("m-1", TOOLS)

    first = ended(conversation, "Read it.", build_calling_answer(build_call()), build_answer("Read."))
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


def test_saying_changes_nothing_before_the_end_is_taken() -> None:
    conversation = Conversation("m-1", TOOLS)

    assert conversation.say("One.").history == ()
    assert conversation.say("Two.").history == ()


def test_a_run_that_broke_off_leaves_the_conversation_as_it_was() -> None:
    """A call without its result would be refused by most endpoints."""
    conversation = Conversation("m-1", TOOLS)
    conversation.take(ended(conversation, "Hello.", build_answer("Hello!")))
    before = conversation.history

    broken = ended(conversation, "Read it.", build_calling_answer(build_call()), StopRun(StopReason.CANCELLED))

    assert broken.end is EndReason.CANCELLED
    assert not conversation.take(broken)
    assert conversation.history == before


def test_every_end_is_kept_or_broken_off() -> None:
    assert set(EndReason) - INCOMPLETE_ENDS == {
        EndReason.FINAL,
        EndReason.LENGTH,
        EndReason.NO_TOOL_CALLS,
        EndReason.TOOL_ERROR,
        EndReason.MAX_TURNS_EXCEEDED,
    }


def test_settings_are_the_policys_own_keys() -> None:
    conversation = Conversation.with_settings(
        "m-1", ToolRegistry((GET_TOOL,)), tool_choice=ToolChoice.named("state_get"), max_turns=3
    )

    assert conversation.policy.max_turns == 3
    assert conversation.policy.tool_choice == {"type": "function", "function": {"name": "state_get"}}
    with pytest.raises(PolicyError, match="max_turn: unknown key"):
        Conversation.with_settings("m-1", TOOLS, max_turn=3)
