"""Answers that a server refused to return.

Some servers report an error when they cannot read a call, and quote the text of the model in the error.
"""

from collections.abc import Collection

from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.methods.json_in_text import UNREADABLE_CODES, find_attempted_call
from toolbench.engine.types import Finding, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer

CALLS_FROM_TEXT_TRANSFORM = "tool_calls_from_text"
_FINDING_MESSAGE = (
    "The server could not read the call in this answer and returned an error; the text in the error was read instead."
)


def parse_refused_answer(
    setup: TurnSetup, text: str, *, has_tools: bool, taken_ids: Collection[str] = ()
) -> Turn | str:
    """Parse the text of the model that a server quotes in an error.

    Args:
        setup: the setup of the run.
        text: the quoted text.
        has_tools: whether the request had tools.
        taken_ids: ids of calls in the conversation.

    Returns:
        The turn, if the policy reads calls in text and the text has a call that can be read. Otherwise a sentence about
        the call in the text; "" if the text has no call.
    """
    tool_names = [tool.name for tool in setup.tools.definitions] if has_tools else []
    reads_calls_in_text = CALLS_FROM_TEXT_TRANSFORM in setup.policy.response_transforms and bool(tool_names)
    if reads_calls_in_text:
        finding = Finding("answer_refused", _FINDING_MESSAGE, "$.error.failed_generation")
        message = {"role": "assistant", "content": _add_missing_start_marker(text, tool_names)}
        turn = parse_chat_turn(setup, ChatAnswer(message, findings=(finding,)), has_tools=True, taken_ids=taken_ids)
        if turn.calls:
            return turn
    name_or_code = find_attempted_call(_add_missing_start_marker(text, tool_names), tool_names)
    if not name_or_code:
        return ""
    description = f"What the model wrote is a call ({name_or_code})"
    is_unreadable = reads_calls_in_text or name_or_code in UNREADABLE_CODES
    return (
        f"{description} that cannot be read."
        if is_unreadable
        else f"{description}; the transform {CALLS_FROM_TEXT_TRANSFORM} reads such answers."
    )


def _add_missing_start_marker(text: str, tool_names: list[str]) -> str:
    """Add `<function=` to a text that begins with a tool name and `{`; some servers omit it."""
    lacks_start_marker = text.lstrip().startswith(tuple(f"{name}{{" for name in tool_names))
    return f"<function={text.lstrip()}" if lacks_start_marker else text
