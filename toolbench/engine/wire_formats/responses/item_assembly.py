"""Assembly of one output item of a streamed Responses answer from its events."""

from collections.abc import Iterator

from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_text
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.responses.answers import build_chat_message

_PART_LISTS = {  # by kind of delta: field of the item, type of the part, field of the part's text
    "output_text": ("content", "output_text", "text"),
    "refusal": ("content", "refusal", "refusal"),
    "reasoning_text": ("content", "reasoning_text", "text"),
    "reasoning_summary_text": ("summary", "summary_text", "text"),
}
_REASONING_KINDS = ("reasoning_text", "reasoning_summary_text")


class ItemAssembler:
    """Assembler of one item. The item of `response.output_item.done` replaces what was assembled before.

    Args:
        first_content: the item as its first event contains it.
        call_index: index among the calls of the answer, from 0; None for an item that is no call.
    """

    def __init__(self, first_content: JsonObject, call_index: int | None) -> None:
        self.call_index = call_index
        self.is_closed = False
        self.item_id = get_text(first_content.get("id"))
        self._first_content = dict(first_content)
        self._arguments_chunks: list[str] = []
        # By field of the item and index of the part: type of the part, field of its text, chunks of the text.
        self._parts: dict[tuple[str, int], tuple[str, str, list[str]]] = {}
        self._final_item: JsonObject | None = None

    def add(self, delta_kind: str, event: JsonObject) -> Iterator[Delta]:
        """Add the delta of an event and yield it as a Delta for the listener, if the listener gets one.

        Args:
            delta_kind: the kind of the delta, such as `output_text`; unknown kinds are ignored.
            event: the data of the event.
        """
        delta = get_text(event.get("delta"))
        if delta_kind == "function_call_arguments":
            if delta:
                self._arguments_chunks.append(delta)
            if self.call_index is not None:
                yield Delta(call_index=self.call_index, name=self._get_name(), arguments=delta)
        elif delta_kind in _PART_LISTS and delta:
            field, part_type, text_name = _PART_LISTS[delta_kind]
            part_index = event.get("summary_index" if field == "summary" else "content_index")
            part_key = (field, part_index if isinstance(part_index, int) else 0)
            self._parts.setdefault(part_key, (part_type, text_name, []))[2].append(delta)
            if delta_kind == "output_text":
                yield Delta(text=delta)
            elif delta_kind in _REASONING_KINDS:
                yield Delta(reasoning=delta)

    def close(self, final_item: JsonObject | None = None) -> Iterator[Delta]:
        """End the item and yield its last Deltas for the listener.

        If no delta was received before, one Delta has the whole content of `final_item`. For a call, one more marks the
        end, unless the item was ended before.

        Args:
            final_item: the complete item; None if the event has none.
        """
        has_deltas = bool(self._arguments_chunks or self._parts)
        self._final_item = final_item or self._final_item
        if final_item and not has_deltas:
            yield from self._build_item_deltas(final_item)
        if self.call_index is not None and not self.is_closed:
            yield Delta(call_index=self.call_index, name=self._get_name(), is_closed=True)
        self.is_closed = True

    def _build_item_deltas(self, item: JsonObject) -> Iterator[Delta]:
        """Yield the whole content of an item as one Delta; none if it is no call and has neither text nor reasoning."""
        if self.call_index is not None:
            yield Delta(call_index=self.call_index, name=self._get_name(), arguments=get_text(item.get("arguments")))
            return
        message = build_chat_message([item])
        text, reasoning = get_message_text(message), get_text(message.get("reasoning_content"))
        if text or reasoning:
            yield Delta(text=text, reasoning=reasoning)

    def to_json(self) -> JsonObject:
        """Return the item so far."""
        if self._final_item is not None:
            return self._final_item
        item = dict(self._first_content)
        if self._arguments_chunks:
            item["arguments"] = "".join(self._arguments_chunks)
        parts: dict[str, list[JsonObject]] = {}
        for field, part_index in sorted(self._parts):
            part_type, text_name, texts = self._parts[field, part_index]
            parts.setdefault(field, []).append({"type": part_type, text_name: "".join(texts)})
        return item | parts

    def _get_name(self) -> str:
        return get_text((self._final_item or self._first_content).get("name"))
