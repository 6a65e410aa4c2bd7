"""Assembly of the events of a streamed Messages answer into the object of an unstreamed one."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import InvalidJsonError, MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_object, get_text, read_json
from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.anthropic.answers import build_chat_message, parse_messages_answer
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.event_assembly import SHARED_FINDING_MESSAGES, EventAssembler

_FINDING_MESSAGES = {
    **SHARED_FINDING_MESSAGES,
    "stream_index_missing": "Parts of content blocks have no index; they were added to the last block.",
    "stream_index_reused": "Several content blocks have one index; events showed where each begins.",
    "stream_stop_missing": "The stream ended without message_stop.",
    "stream_unfinished": "The stream ended without a stop reason and without message_stop.",
}


class BlockAssembler:
    """Assembler of one content block. Unknown fields are kept; their texts are joined.

    Args:
        first_content: the block as its first event contains it.
        call_index: index among the calls of the answer, from 0; None for a block that is no call.
    """

    def __init__(self, first_content: JsonObject, call_index: int | None) -> None:
        self.call_index = call_index
        self.is_closed = False
        self._received_fields = dict(first_content)  # fields of the first event, and later ones received as a whole
        self._texts: dict[str, list[str]] = {}  # by field, the chunks of its text after the first event
        self._input_chunks: list[str] = []

    def add(self, delta: JsonObject) -> Delta | None:
        """Add the delta of an event and return it as a Delta for the listener; None if the listener gets none."""
        input_part = delta.get("partial_json")
        if isinstance(input_part, str):
            self._input_chunks.append(input_part)
            name = get_text(self._received_fields.get("name"))
            return (
                None if self.call_index is None else Delta(call_index=self.call_index, name=name, arguments=input_part)
            )
        for name, value in delta.items():
            self._add_field(name, value)
        text, thinking = delta.get("text"), delta.get("thinking")
        if isinstance(text, str) and text:
            return Delta(text=text)
        return Delta(reasoning=thinking) if isinstance(thinking, str) and thinking else None

    def _add_field(self, name: str, value: Any) -> None:
        """Add a field of a delta. A signature is received as a whole, citations one by one, other texts in chunks."""
        if name == "citation":
            citations = self._received_fields.get("citations")
            self._received_fields["citations"] = [*(citations if isinstance(citations, list) else ()), value]
        elif isinstance(value, str) and name not in ("type", "signature"):
            self._texts.setdefault(name, []).append(value)
        elif name != "type":
            self._received_fields[name] = value

    @property
    def is_truncated(self) -> bool:
        """Whether the block is a call that was not closed, or whose input is not an object."""
        return self.call_index is not None and not (self.is_closed and isinstance(self._build_input(), dict))

    def to_json(self) -> JsonObject:
        """Return the block so far; an input that is not JSON stays text."""
        texts = {
            name: f"{self._received_fields.get(name) or ''}{''.join(chunks)}" for name, chunks in self._texts.items()
        }
        block = {**self._received_fields, **texts}
        return {**block, "input": self._build_input()} if self._input_chunks or "input" in block else block

    def _build_input(self) -> Any:
        """Return the input so far.

        It is the JSON value of the received chunks, or their text if the text is not JSON. Without chunks, it is the
        input in the first event of the block; {} if that event has none.
        """
        input_text = "".join(self._input_chunks)
        if not input_text.strip():
            return self._received_fields.get("input", {})
        try:
            return read_json(input_text)
        except InvalidJsonError:
            return input_text


class MessagesAssembler(EventAssembler):
    """Assembler of the events of one Messages answer. Pings and unknown events are ignored."""

    def __init__(self) -> None:
        super().__init__()
        self._usage: JsonObject = {}
        self._blocks: list[BlockAssembler] = []
        self._blocks_by_index: dict[int, BlockAssembler] = {}
        self._call_count = 0
        self._has_stop = False

    @property
    def has_content(self) -> bool:
        """Whether there is a block."""
        return bool(self._blocks)

    def _add_payload(self, payload: JsonObject) -> Iterator[Delta]:
        """Add the data of an event and yield its deltas."""
        event_type = payload.get("type")
        if payload.get("error"):
            self._error = self._error or payload["error"]
        elif event_type == "message_start":
            self._root = dict(get_object(payload.get("message")))
            self._update_usage(self._root.get("usage"))
        elif event_type == "message_delta":
            self._root |= {name: value for name, value in get_object(payload.get("delta")).items() if value is not None}
            self._update_usage(payload.get("usage"))
        elif event_type == "message_stop":
            self._has_stop = True
        elif isinstance(event_type, str) and event_type.startswith("content_block_"):
            yield from self._add_block_event(event_type, payload)

    def _update_usage(self, usage: Any) -> None:
        """Update the token counts, which are totals, so later values replace earlier ones."""
        self._usage |= {name: value for name, value in get_object(usage).items() if value is not None}

    def _add_block_event(self, event_type: str, payload: JsonObject) -> Iterator[Delta]:
        """Add an event of a content block and yield its deltas; without an index, it belongs to the last block."""
        index = payload.get("index")
        index = index if isinstance(index, int) else None
        if index is None:
            self._fault_codes["stream_index_missing"] = None
        if event_type == "content_block_start":
            yield from self._open_block(dict(get_object(payload.get("content_block"))), index)
        elif block := self._blocks_by_index.get(index) if index is not None else next(reversed(self._blocks), None):
            if event_type == "content_block_delta":
                delta = block.add(get_object(payload.get("delta")))
                yield from () if delta is None else (delta,)
            elif event_type == "content_block_stop":
                block.is_closed = True
                if block.call_index is not None:
                    yield Delta(call_index=block.call_index, is_closed=True)

    def _open_block(self, first_content: JsonObject, index: int | None) -> Iterator[Delta]:
        """Begin a block, also for an index that an earlier block has, and yield the Delta that begins a call."""
        call_index = self._call_count if first_content.get("type") == "tool_use" else None
        block = BlockAssembler(first_content, call_index)
        self._blocks.append(block)
        if index is not None:
            if index in self._blocks_by_index:
                self._fault_codes["stream_index_reused"] = None
            self._blocks_by_index[index] = block
        if call_index is not None:
            self._call_count += 1
            yield Delta(call_index=call_index, name=get_text(first_content.get("name")))

    def build_message(self) -> Message:
        """Return the message so far in chat format."""
        return build_chat_message(self._root, [block.to_json() for block in self._blocks])

    def _build_answer(self, fault_codes: Sequence[str], *, is_truncated: bool) -> ChatAnswer:
        """Return the answer with a finding for each code."""
        if not self._root:
            raise MalformedAnswerError("no_message", "the stream contains no message_start")
        blocks = [block.to_json() for block in self._blocks]
        root = {**self._root, "content": blocks, "usage": self._usage or None}
        return parse_messages_answer(
            root, is_truncated=is_truncated, findings=[Finding(code, _FINDING_MESSAGES[code]) for code in fault_codes]
        )

    def _list_end_fault_codes(self) -> Iterator[str]:
        """Yield the finding codes for faults at the end of the stream."""
        has_end = self._has_stop or bool(self._root.get("stop_reason"))
        if not has_end and (self._unreadable_text or any(block.is_truncated for block in self._blocks)):
            yield "stream_cut"
        elif not has_end:
            yield "stream_unfinished"
        elif not self._has_stop:
            yield "stream_stop_missing"
        if not self._usage:
            yield "stream_usage_missing"
