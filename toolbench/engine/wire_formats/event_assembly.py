"""Assembly of the events of a streamed answer; each wire format with events has its own assembler."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.chat_answer import ChatAnswer, get_error_text
from toolbench.engine.wire_formats.parse_answer import truncate_snippet
from toolbench.engine.wire_formats.sse import DONE, Payload, is_broken_event

SHARED_FINDING_MESSAGES = {
    "stream_cut": "The stream broke off in the middle; no call of this answer was executed.",
    "stream_usage_missing": "The stream has no token counts.",
}


class EventAssembler(ABC):
    """Assembler of the events of one answer."""

    def __init__(self) -> None:
        self._root: JsonObject = {}  # the fields of the answer outside of its message
        self._fault_codes: dict[str, None] = {}  # finding codes in the order of their first occurrence
        self._has_done = False  # whether [DONE] was received, which only OpenAI's formats send
        self._error: Any = None
        self._unreadable_text = ""

    @property
    @abstractmethod
    def has_content(self) -> bool:
        """Whether the message has any content: more than a role."""

    def add_event(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield its deltas for the listener."""
        if isinstance(event, dict):
            yield from self._add_payload(event)
        elif is_broken_event(event):
            self._unreadable_text = self._unreadable_text or event or "an empty event"
        elif event.strip() == DONE:
            self._has_done = True

    @abstractmethod
    def _add_payload(self, payload: JsonObject) -> Iterator[Delta]:
        """Add the data of an event and yield its deltas."""

    @abstractmethod
    def build_message(self) -> Message:
        """Return the message so far in chat format."""

    def build_answer(self) -> ChatAnswer:
        """Return the answer.

        Raises:
            MalformedAnswerError: the events contain an error or no answer, or an event is not JSON although the stream
                was not truncated.
        """
        if self._error:
            raise MalformedAnswerError("error_object", f"the stream contains an error: {get_error_text(self._error)}")
        fault_codes = [*self._fault_codes, *self._list_end_fault_codes()]
        is_truncated = "stream_cut" in fault_codes
        if self._unreadable_text and not is_truncated:
            raise MalformedAnswerError(
                "not_json", f"an event of the stream is not JSON: {truncate_snippet(self._unreadable_text)}"
            )
        return self._build_answer(fault_codes, is_truncated=is_truncated)

    @abstractmethod
    def _list_end_fault_codes(self) -> Iterator[str]:
        """Yield the finding codes for faults at the end of the stream; `stream_cut` if it was truncated."""

    @abstractmethod
    def _build_answer(self, fault_codes: Sequence[str], *, is_truncated: bool) -> ChatAnswer:
        """Return the answer with a finding for each code."""
