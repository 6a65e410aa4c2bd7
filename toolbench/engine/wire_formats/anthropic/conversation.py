"""A chat conversation in the order that the Messages API requires.

User and assistant turns alternate, beginning with the user. A user turn after calls begins with all their results.
A chat id is a call id in the chat, a wire id the call id that is sent to the endpoint in its place.
"""

from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.blocks import (
    build_assistant_blocks,
    build_result_block,
    build_text_block,
    build_user_blocks,
    is_blank_block,
)
from toolbench.engine.wire_formats.anthropic.call_ids import CallIdAssigner
from toolbench.engine.wire_formats.anthropic.call_results import CallResults
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls

OPENING_TEXT = "Go on."  # first user turn of a conversation that does not begin with one
SYSTEM_ROLES = ("system", "developer")


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """Return the system texts at the beginning, joined by blank lines, and the other messages."""
    system_count = next(
        (index for index, message in enumerate(messages) if message.get("role") not in SYSTEM_ROLES), len(messages)
    )
    texts = [get_message_text(message) for message in messages[:system_count]]
    return "\n\n".join(text for text in texts if text.strip()), messages[system_count:]


def arrange_turns(messages: list[Message], changes: WireChanges) -> list[JsonObject]:
    """Return the turns of the Messages API for these messages. Call `split_system` first.

    Args:
        messages: chat messages without leading system messages; not modified.
        changes: records what had to be changed. A blank message of the user or the assistant, and a blank result
            without a call, are left out without a record.
    """
    builder = _TurnBuilder(changes)
    for message in messages:
        builder.add_message(message)
    return builder.build_turns()


class _TurnBuilder:
    """Builder of the turns; it collects user content until the next assistant turn."""

    def __init__(self, changes: WireChanges) -> None:
        self._changes = changes
        self._id_assigner = CallIdAssigner()
        self._turns: list[JsonObject] = []
        self._results = CallResults(changes)
        self._user_blocks: list[JsonObject] = []

    def add_message(self, message: Message) -> None:
        """Add the next message of the chat."""
        role = message.get("role")
        if role == "assistant":
            self._add_assistant(message)
        elif role == "tool":
            self._add_result(message)
        else:
            if role in SYSTEM_ROLES:
                self._changes.record("midturn_system_folded", "$.messages[*]", message.get("content"))
            self._user_blocks += build_user_blocks(message.get("content"))

    def build_turns(self) -> list[JsonObject]:
        """Return all turns."""
        self._add_user_turn()
        if not self._turns or self._turns[0]["role"] != "user":
            self._changes.record("first_user_added", "$.messages[0]", None, OPENING_TEXT)
            self._turns.insert(0, {"role": "user", "content": [build_text_block(OPENING_TEXT)]})
        if self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = _strip_trailing_space(self._turns[-1]["content"])
        return self._turns

    def _add_assistant(self, message: Message) -> None:
        """Add an assistant's turn and note the ids of its calls, whose results have to follow."""
        chat_ids = [call.get("id") for call in list_structured_calls(message)]
        wire_ids = self._id_assigner.assign_ids(chat_ids)
        blocks = build_assistant_blocks(message, wire_ids, self._changes)
        if not blocks:
            return
        self._add_user_turn()
        self._results.open_turn(chat_ids, wire_ids, "$.messages[*].content[*].id")
        if self._turns and self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = [*self._turns[-1]["content"], *blocks]
        else:
            self._turns.append({"role": "assistant", "content": blocks})

    def _add_result(self, message: Message) -> None:
        """Assign a result to its call in the last turn; without such a call, add its content to the user turn."""
        if not self._results.add(message) and (blocks := build_user_blocks(message.get("content"))):
            self._changes.record("orphan_result_as_text", "$.messages[*]", message.get("tool_call_id"))
            self._user_blocks += blocks

    def _add_user_turn(self) -> None:
        """Append the user turn: one result per call of the last assistant turn, then the collected content.

        A missing result gets a placeholder.
        """
        results = [build_result_block(wire_id, result) for wire_id, result in self._results.close_turn()]
        if results or self._user_blocks:
            self._turns.append({"role": "user", "content": [*results, *self._user_blocks]})
        self._user_blocks = []


def _strip_trailing_space(blocks: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks without white space at the end of a last text block, which the Messages API refuses.

    A last block that is then blank is left out, unless it is the only block.
    """
    last_block = blocks[-1]
    if last_block.get("type") != "text":
        return blocks
    last_block = {**last_block, "text": str(last_block.get("text")).rstrip()}
    return blocks[:-1] if is_blank_block(last_block) and len(blocks) > 1 else [*blocks[:-1], last_block]
