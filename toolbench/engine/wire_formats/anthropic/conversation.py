"""A chat conversation in the order that Messages requires.

User and assistant take turns, the user first. After an assistant's calls, all their results stand in one user turn,
before anything else of the user.
"""

from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.blocks import (
    build_assistant_blocks,
    build_result_block,
    build_text_block,
    build_user_blocks,
    is_blank_block,
)
from toolbench.engine.wire_formats.anthropic.call_ids import CallIdMap
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls

OPENING_TEXT = "Go on."  # said by the user where a conversation does not begin with one
SYSTEM_ROLES = ("system", "developer")


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """Return the system texts at the beginning, joined by blank lines, and the other messages."""
    count = next(
        (place for place, message in enumerate(messages) if message.get("role") not in SYSTEM_ROLES), len(messages)
    )
    texts = [get_message_text(message) for message in messages[:count]]
    return "\n\n".join(text for text in texts if text.strip()), messages[count:]


def arrange_turns(messages: list[Message], changes: WireChanges) -> list[JsonObject]:
    """Return the messages after the system texts as turns of Messages. The arguments are not changed."""
    layout = _TurnBuilder(changes)
    for message in messages:
        layout.take(message)
    return layout.finish()


class _TurnBuilder:
    """The turns so far, and the user's content since the last turn of the assistant."""

    def __init__(self, changes: WireChanges) -> None:
        self._changes = changes
        self._ids = CallIdMap()
        self._turns: list[JsonObject] = []
        # (id in the chat, id that travels) of the last turn's calls
        self._expected_results: list[tuple[object, str]] = []
        self._results: dict[str, Message] = {}  # by the id that travels
        self._user_blocks: list[JsonObject] = []

    def take(self, message: Message) -> None:
        """Add a message."""
        role = message.get("role")
        if role == "assistant":
            self._assistant(message)
        elif role == "tool":
            self._result(message)
        else:
            if role in SYSTEM_ROLES:
                self._changes.note("midturn_system_folded", "$.messages[*]", message.get("content"))
            self._user_blocks += build_user_blocks(message.get("content"))

    def finish(self) -> list[JsonObject]:
        """Return all turns."""
        self._close_user_turn()
        if not self._turns or self._turns[0]["role"] != "user":
            self._changes.note("first_user_added", "$.messages[0]", None, OPENING_TEXT)
            self._turns.insert(0, {"role": "user", "content": [build_text_block(OPENING_TEXT)]})
        if self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = _strip_trailing_space(self._turns[-1]["content"])
        return self._turns

    def _assistant(self, message: Message) -> None:
        ids = [call.get("id") for call in list_structured_calls(message)]
        travelling = self._ids.assign_ids(ids)
        blocks = build_assistant_blocks(message, travelling, self._changes)
        if not blocks:
            return
        self._close_user_turn()
        self._expected_results = list(zip(ids, travelling, strict=True))
        for given, sent in self._expected_results:
            if given != sent:
                self._changes.note("call_id_mapped", "$.messages[*].content[*].id", given, sent)
        if self._turns and self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = [*self._turns[-1]["content"], *blocks]
        else:
            self._turns.append({"role": "assistant", "content": blocks})

    def _result(self, message: Message) -> None:
        given = message.get("tool_call_id")
        waiting = (sent for known, sent in self._expected_results if known == given and sent not in self._results)
        sent = next(waiting, None)
        if sent is not None:
            self._results[sent] = message
        elif blocks := build_user_blocks(message.get("content")):
            self._changes.note("orphan_result_as_text", "$.messages[*]", given)
            self._user_blocks += blocks

    def _close_user_turn(self) -> None:
        results = [build_result_block(sent, self._results.get(sent)) for _, sent in self._expected_results]
        for given, sent in self._expected_results:
            if sent not in self._results:
                self._changes.note("missing_result_added", "$.messages[*]", given)
        if results or self._user_blocks:
            self._turns.append({"role": "user", "content": [*results, *self._user_blocks]})
        self._expected_results, self._results, self._user_blocks = [], {}, []


def _strip_trailing_space(blocks: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks without white space at the end of the last text, which Messages refuses."""
    last = blocks[-1]
    if last.get("type") != "text":
        return blocks
    last = {**last, "text": str(last.get("text")).rstrip()}
    return blocks[:-1] if is_blank_block(last) and len(blocks) > 1 else [*blocks[:-1], last]
