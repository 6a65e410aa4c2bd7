"""Answers that a server refused to pass on.

Some servers report a call that they could not read as an error, and quote what the model wrote.
"""

from collections.abc import Collection

from toolbench.engine.loop.turn import read_answer
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.methods.json_in_text import UNREADABLE_CODES, find_unread_call
from toolbench.engine.types import Finding, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer

HEALING_TRANSFORM = "tool_calls_from_text"
_FINDING_MESSAGE = (
    "The server refused this answer because it could not read the call in it; the text it quotes was read instead."
)


def read_refused_answer(setup: TurnSetup, text: str, *, with_tools: bool, taken: Collection[str] = ()) -> Turn | str:
    """Parse the text that a server quotes.

    Args:
        setup: the setup of the turn.
        text: the quoted text.
        with_tools: whether the request had tools.
        taken: ids of calls in the conversation.

    Returns:
        The turn, if the policy reads calls in text and there is one. Otherwise a sentence on what was found; "" for
        nothing.
    """
    names = [tool.name for tool in setup.tools.definitions] if with_tools else []
    heals = HEALING_TRANSFORM in setup.policy.response_transforms and bool(names)
    if heals:
        finding = Finding("answer_refused", _FINDING_MESSAGE, "$.error.failed_generation")
        message = {"role": "assistant", "content": _restore_start_marker(text, names)}
        turn = read_answer(setup, ChatAnswer(message, findings=(finding,)), with_tools=True, taken=taken)
        if turn.calls:
            return turn
    call_text = find_unread_call(_restore_start_marker(text, names), names)
    if not call_text:
        return ""
    description = f"What the model wrote is a call ({call_text})"
    lost = heals or call_text in UNREADABLE_CODES
    return (
        f"{description} that cannot be read."
        if lost
        else f"{description}; the transform {HEALING_TRANSFORM} reads such answers."
    )


def _restore_start_marker(text: str, names: list[str]) -> str:
    """Return the text with its start marker; some servers quote a call without it: `name{…}</function>`."""
    bare = text.lstrip().startswith(tuple(f"{name}{{" for name in names))
    return f"<function={text.lstrip()}" if bare else text
