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
    """Assembler of one item. The item of `response.output_item.done` replaces what was assembled before."""

    def __init__(self, start: JsonObject, call: int | None) -> None:
        self.call = call  # index among the calls of the answer, from 0; None for other items
        self.closed = False
        self.item_id = get_text(start.get("id"))
        self._start = dict(start)
        self._arguments: list[str] = []
        self._parts: dict[tuple[str, int], tuple[str, str, list[str]]] = {}  # by field and index
        self._final: JsonObject | None = None

    def add(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        """Add a delta of this kind, such as output_text; yield the Delta for the listener."""
        delta = get_text(event.get("delta"))
        if kind == "function_call_arguments":
            if delta:
                self._arguments.append(delta)
            if self.call is not None:
                yield Delta(call=self.call, name=self._get_name(), arguments=delta)
        elif kind in _PART_LISTS and delta:
            field, part_type, text_name = _PART_LISTS[kind]
            place = event.get("summary_index" if field == "summary" else "content_index")
            key = (field, place if isinstance(place, int) else 0)
            self._parts.setdefault(key, (part_type, text_name, []))[2].append(delta)
            if kind == "output_text":
                yield Delta(text=delta)
            elif kind in _REASONING_KINDS:
                yield Delta(reasoning=delta)

    def close(self, final: JsonObject | None = None) -> Iterator[Delta]:
        """End the item; `final` is its complete form. Yield the text that no delta had, and the end of a call."""
        has_deltas = bool(self._arguments or self._parts)
        self._final = final or self._final
        if final and not has_deltas:
            yield from self._build_whole_deltas(final)
        if self.call is not None and not self.closed:
            yield Delta(call=self.call, name=self._get_name(), closed=True)
        self.closed = True

    def _build_whole_deltas(self, item: JsonObject) -> Iterator[Delta]:
        if self.call is not None:
            yield Delta(call=self.call, name=self._get_name(), arguments=get_text(item.get("arguments")))
            return
        message = build_chat_message([item])
        text, reasoning = get_message_text(message), get_text(message.get("reasoning_content"))
        if text or reasoning:
            yield Delta(text=text, reasoning=reasoning)

    def to_json(self) -> JsonObject:
        """Return the item so far."""
        if self._final is not None:
            return self._final
        item = dict(self._start)
        if self._arguments:
            item["arguments"] = "".join(self._arguments)
        parts: dict[str, list[JsonObject]] = {}
        for field, place in sorted(self._parts):
            part_type, text_name, texts = self._parts[field, place]
            parts.setdefault(field, []).append({"type": part_type, text_name: "".join(texts)})
        return item | parts

    def _get_name(self) -> str:
        return get_text((self._final or self._start).get("name"))
