"""A chat conversation as input items of Responses.

Every call has exactly one output, before the next turn of the model. A chat id is a call id in the chat, a wire id the
call id that is sent to the endpoint in its place.
"""

import re

from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.call_ids import CallIdAssigner
from toolbench.engine.wire_formats.anthropic.call_results import CallResults
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls
from toolbench.engine.wire_formats.responses.items import (
    build_assistant_items,
    build_message_item,
    build_result_item,
)

# 1 to 64 characters that do not begin with white space; OpenAI refuses longer ids.
_CALL_ID = re.compile(r"\S(?s:.){0,63}")


def build_input_items(messages: list[Message], changes: WireChanges) -> list[JsonObject]:
    """Return the input items for these messages. Call `split_system` first.

    Args:
        messages: chat messages without leading system messages; not modified.
        changes: records what had to be changed. A result with neither a call nor text is dropped without a record.
    """
    builder = _InputBuilder(changes)
    for message in messages:
        builder.add_message(message)
    return builder.build_items()


class _InputBuilder:
    """Builder of the items; the outputs of a turn's calls directly follow that turn of the model."""

    def __init__(self, changes: WireChanges) -> None:
        self._changes = changes
        self._id_assigner = CallIdAssigner(_CALL_ID, "call_")
        self._items: list[JsonObject] = []
        self._results = CallResults(changes)
        self._later_items: list[JsonObject] = []  # items that follow the outputs

    def add_message(self, message: Message) -> None:
        """Add the next message of the chat."""
        role = message.get("role")
        if role == "assistant":
            self._add_assistant(message)
        elif role == "tool":
            self._add_result(message)
        else:
            self._later_items.append(build_message_item(str(role), message.get("content")))

    def build_items(self) -> list[JsonObject]:
        """Return all items."""
        self._add_results()
        return self._items

    def _add_assistant(self, message: Message) -> None:
        """Add the items of an assistant's turn, after the outputs and later items of the turn before it."""
        self._add_results()
        chat_ids = [call.get("id") for call in list_structured_calls(message)]
        wire_ids = self._id_assigner.assign_ids(chat_ids)
        self._results.open_turn(chat_ids, wire_ids, "$.input[*].call_id")
        self._items += build_assistant_items(message, wire_ids, self._changes)

    def _add_result(self, message: Message) -> None:
        """Assign a result to its call in the last turn; without such a call, add its text as a message of the user."""
        if not self._results.add(message) and (text := get_message_text(message)):
            self._changes.record("orphan_result_as_text", "$.messages[*]", message.get("tool_call_id"))
            self._later_items.append(build_message_item("user", text))

    def _add_results(self) -> None:
        """Append one output per call of the last turn, then the later items.

        A missing result gets a placeholder.
        """
        self._items += [build_result_item(wire_id, result) for wire_id, result in self._results.close_turn()]
        self._items += self._later_items
        self._later_items = []
