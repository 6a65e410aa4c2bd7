"""Assembly of the events of a streamed Responses answer into the object of an unstreamed one."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_object, get_text
from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.event_assembly import SHARED_FINDING_MESSAGES, EventAssembler
from toolbench.engine.wire_formats.responses.answers import build_chat_message, parse_responses_answer
from toolbench.engine.wire_formats.responses.item_assembly import ItemAssembler

END_EVENTS = ("response.completed", "response.incomplete", "response.failed")
_START_EVENTS = ("response.created", "response.queued", "response.in_progress")
_FINDING_MESSAGES = {
    **SHARED_FINDING_MESSAGES,
    "stream_index_missing": "Output items have no index; their events were assigned by id, or else to the last item.",
    "stream_index_reused": "Several output items have one index; response.output_item.added showed where each begins.",
    "stream_unfinished": "The stream ended without response.completed or response.incomplete.",
}


class ResponsesAssembler(EventAssembler):
    """Assembler of the events of one Responses answer. Unknown events are ignored; items of unknown types are kept."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[ItemAssembler] = []
        self._items_by_index: dict[int, ItemAssembler] = {}
        self._items_by_id: dict[str, ItemAssembler] = {}
        self._call_count = 0
        self._has_end = False

    @property
    def has_content(self) -> bool:
        """Whether there is an item."""
        return bool(self._items)

    def _add_payload(self, payload: JsonObject) -> Iterator[Delta]:
        """Add the data of an event and yield its deltas."""
        event_type = get_text(payload.get("type"))
        if payload.get("error") or event_type == "error":
            self._error = self._error or payload.get("error") or payload
        elif event_type in (*_START_EVENTS, *END_EVENTS):
            self._root = {**self._root, **get_object(payload.get("response"))}
            self._has_end = self._has_end or event_type in END_EVENTS
        elif event_type == "response.output_item.added":
            yield from self._open_item(payload)
        elif event_type.startswith("response."):
            yield from self._add_item_event(event_type.removeprefix("response."), payload)

    def _open_item(self, payload: JsonObject) -> Iterator[Delta]:
        """Add an item, also if an earlier item has its index, and yield a Delta for a call."""
        first_content = dict(get_object(payload.get("item")))
        index = payload.get("output_index")
        item = ItemAssembler(first_content, self._call_count if first_content.get("type") == "function_call" else None)
        self._items.append(item)
        if item.item_id:
            self._items_by_id[item.item_id] = item
        if not isinstance(index, int):
            self._fault_codes["stream_index_missing"] = None
        elif index in self._items_by_index:
            self._fault_codes["stream_index_reused"] = None
        if isinstance(index, int):
            self._items_by_index[index] = item
        if item.call_index is not None:
            self._call_count += 1
            yield Delta(call_index=item.call_index, name=get_text(first_content.get("name")))

    def _add_item_event(self, event_name: str, payload: JsonObject) -> Iterator[Delta]:
        """Add an event of an output item and yield its deltas.

        Args:
            event_name: the type of the event without `response.`, such as `output_text.delta`.
            payload: the data of the event.
        """
        final_item = get_object(payload.get("item")) if event_name == "output_item.done" else {}
        item = self._find_item(payload, final_item)
        if item is None and final_item:
            yield from self._open_item(payload)
            item = self._items[-1]
        if item is None:
            return
        delta_kind, _, event_kind = event_name.rpartition(".")
        if final_item:
            yield from item.close(final_item)
        elif event_name == "function_call_arguments.done":
            yield from item.close()
        elif event_kind == "delta":
            yield from item.add(delta_kind, payload)

    def _find_item(self, payload: JsonObject, final_item: JsonObject) -> ItemAssembler | None:
        """Return the item that an event belongs to; None if there is none.

        The item is found by its id, or by its index if the id is missing or unknown. An event without an index belongs
        to the last item.
        """
        item_id = get_text(payload.get("item_id")) or get_text(final_item.get("id"))
        if item_id in self._items_by_id:
            return self._items_by_id[item_id]
        index = payload.get("output_index")
        if isinstance(index, int):
            return self._items_by_index.get(index)
        return self._items[-1] if self._items else None

    def _list_items(self) -> list[Any]:
        """Return the items of the end event, or those streamed so far if that event is missing or has fewer."""
        streamed_items = [item.to_json() for item in self._items]
        final_items = self._root.get("output") if self._has_end else None
        return (
            final_items if isinstance(final_items, list) and len(final_items) >= len(streamed_items) else streamed_items
        )

    def build_message(self) -> Message:
        """Return the message so far in chat format."""
        return build_chat_message(self._list_items())

    def _build_answer(self, fault_codes: Sequence[str], *, is_truncated: bool) -> ChatAnswer:
        """Return the answer with a finding for each code."""
        if not self._root and not self._items:
            raise MalformedAnswerError("no_message", "the stream contains no event of a response")
        root = {**self._root, "output": self._list_items()}
        if not self._has_end:
            root.pop("status", None)  # of an event before the end, such as in_progress
        findings = [Finding(code, _FINDING_MESSAGES[code]) for code in fault_codes]
        return parse_responses_answer(root, is_truncated=is_truncated, findings=findings)

    def _list_end_fault_codes(self) -> Iterator[str]:
        """Yield the finding codes for faults at the end of the stream."""
        is_call_open = any(item.call_index is not None and not item.is_closed for item in self._items)
        if not self._has_end and (self._unreadable_text or is_call_open):
            yield "stream_cut"
        elif not self._has_end:
            yield "stream_unfinished"
        if not self._root.get("usage"):
            yield "stream_usage_missing"
