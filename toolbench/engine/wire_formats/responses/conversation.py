"""A chat conversation as input items of Responses.

Every call has exactly one output, before the next turn of the model. A wire id is a call id as it is sent.
"""

import re

from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.call_ids import CallIdMap
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls
from toolbench.engine.wire_formats.responses.items import (
    build_assistant_items,
    build_message_item,
    build_result_item,
)

_CALL_ID = re.compile(r"\S(?s:.){0,63}")  # OpenAI accepts ids of at most 64 characters


def build_input_items(messages: list[Message], changes: WireChanges) -> list[JsonObject]:
    """Return the messages after the instructions as input items.

    Args:
        messages: the messages; not modified.
        changes: records what had to be changed.
    """
    builder = _InputBuilder(changes)
    for message in messages:
        builder.add(message)
    return builder.finish()


class _InputBuilder:
    """Builder of the items; the outputs of a turn's calls directly follow the turn."""

    def __init__(self, changes: WireChanges) -> None:
        self._changes = changes
        self._ids = CallIdMap(_CALL_ID, "call_")
        self._items: list[JsonObject] = []
        # (chat id, wire id) of the calls of the last assistant turn
        self._expected_results: list[tuple[object, str]] = []
        self._results: dict[str, Message] = {}  # by wire id
        self._later_items: list[JsonObject] = []  # items that follow the outputs

    def add(self, message: Message) -> None:
        """Add the next message of the chat."""
        role = message.get("role")
        if role == "assistant":
            self._add_assistant(message)
        elif role == "tool":
            self._add_result(message)
        else:
            self._later_items.append(build_message_item(str(role), message.get("content")))

    def finish(self) -> list[JsonObject]:
        """Return all items."""
        self._close_results()
        return self._items

    def _add_assistant(self, message: Message) -> None:
        self._close_results()
        chat_ids = [call.get("id") for call in list_structured_calls(message)]
        wire_ids = self._ids.assign_ids(chat_ids)
        self._expected_results = list(zip(chat_ids, wire_ids, strict=True))
        for chat_id, wire_id in self._expected_results:
            if chat_id != wire_id:
                self._changes.note("call_id_mapped", "$.input[*].call_id", chat_id, wire_id)
        self._items += build_assistant_items(message, wire_ids, self._changes)

    def _add_result(self, message: Message) -> None:
        chat_id = message.get("tool_call_id")
        wire_ids = (sent for known, sent in self._expected_results if known == chat_id and sent not in self._results)
        wire_id = next(wire_ids, None)
        if wire_id is not None:
            self._results[wire_id] = message
        elif text := get_message_text(message):
            self._changes.note("orphan_result_as_text", "$.messages[*]", chat_id)
            self._later_items.append(build_message_item("user", text))

    def _close_results(self) -> None:
        for chat_id, wire_id in self._expected_results:
            if wire_id not in self._results:
                self._changes.note("missing_result_added", "$.messages[*]", chat_id)
            self._items.append(build_result_item(wire_id, self._results.get(wire_id)))
        self._items += self._later_items
        self._expected_results, self._results, self._later_items = [], {}, []
