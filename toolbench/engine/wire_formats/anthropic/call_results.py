"""Results of the calls of one turn, for wire formats that require exactly one result for each call.

A chat id is a call id in the chat, a wire id the call id that is sent to the endpoint in its place.
"""

from collections import deque

from toolbench.engine.types import Message
from toolbench.engine.wire_formats.anthropic.changes import WireChanges


class CallResults:
    """Calls of the last assistant turn, and their results so far."""

    def __init__(self, changes: WireChanges) -> None:
        self._changes = changes
        self._calls: list[tuple[object, str]] = []  # (chat id, wire id)
        # Wire ids of the calls without a result, by `repr` of the chat id, which may be any JSON value.
        self._open_wire_ids: dict[str, deque[str]] = {}
        self._results_by_wire_id: dict[str, Message] = {}

    def open_turn(self, chat_ids: list[object], wire_ids: list[str], path: str) -> None:
        """Begin a turn with these calls, and record the ids that change.

        Args:
            chat_ids: call ids in the chat.
            wire_ids: call ids that are sent, in the same order.
            path: JSON path of the ids, for the record.
        """
        self._calls = list(zip(chat_ids, wire_ids, strict=True))
        for chat_id, wire_id in self._calls:
            self._open_wire_ids.setdefault(repr(chat_id), deque()).append(wire_id)
            if chat_id != wire_id:
                self._changes.record("call_id_mapped", path, chat_id, wire_id)

    def add(self, message: Message) -> bool:
        """Assign a result to the first call that has its id and no result yet; return whether there was such a call."""
        wire_ids = self._open_wire_ids.get(repr(message.get("tool_call_id")))
        if not wire_ids:
            return False
        self._results_by_wire_id[wire_ids.popleft()] = message
        return True

    def close_turn(self) -> list[tuple[str, Message | None]]:
        """Return wire id and result of each call, and forget the calls. A missing result is None, and is recorded."""
        results = [(wire_id, self._results_by_wire_id.get(wire_id)) for _, wire_id in self._calls]
        for chat_id, wire_id in self._calls:
            if wire_id not in self._results_by_wire_id:
                self._changes.record("missing_result_added", "$.messages[*]", chat_id)
        self._calls, self._open_wire_ids, self._results_by_wire_id = [], {}, {}
        return results
