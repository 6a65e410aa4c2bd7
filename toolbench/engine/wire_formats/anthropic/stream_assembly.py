"""Assembly of the events of a streamed Messages answer into the object of an unstreamed one."""

from collections.abc import Iterator
from typing import Any

from toolbench.engine.errors import InvalidJsonError, MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_object, get_text, read_json
from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.anthropic.answers import build_chat_message, parse_messages_answer
from toolbench.engine.wire_formats.chat_answer import ChatAnswer, get_error_text
from toolbench.engine.wire_formats.parse_answer import truncate_snippet
from toolbench.engine.wire_formats.sse import Payload, is_broken_event

_FINDING_MESSAGES = {
    "stream_index_missing": "Parts of content blocks came without an index; the last block was meant.",
    "stream_index_reused": "Several content blocks came under one index; their beginnings told them apart.",
    "stream_stop_missing": "The stream ended without message_stop.",
    "stream_unfinished": "The stream ended without a reason to stop and without message_stop.",
    "stream_cut": "The stream broke off in the middle; no call of this answer was executed.",
    "stream_usage_missing": "The stream did not say how many tokens were used.",
}


class BlockAssembler:
    """One content block so far. Unknown fields are kept, and their texts joined."""

    def __init__(self, start: JsonObject, call: int | None) -> None:
        self.call = call  # the place among the answer's calls, from 0
        self.closed = False
        self._start = dict(start)
        self._texts: dict[str, list[str]] = {}
        self._json: list[str] = []

    def add(self, delta: JsonObject) -> Delta | None:
        """Add a delta; return what a listener gets, None for nothing."""
        written = delta.get("partial_json")
        if isinstance(written, str):
            self._json.append(written)
            name = get_text(self._start.get("name"))
            return None if self.call is None else Delta(call=self.call, name=name, arguments=written)
        for name, value in delta.items():
            self._keep(name, value)
        text, thought = delta.get("text"), delta.get("thinking")
        if isinstance(text, str) and text:
            return Delta(text=text)
        return Delta(reasoning=thought) if isinstance(thought, str) and thought else None

    def _keep(self, name: str, value: Any) -> None:
        """Add a field. A signature comes complete; citations come one by one."""
        if name == "citation":
            known = self._start.get("citations")
            self._start["citations"] = [*(known if isinstance(known, list) else ()), value]
        elif isinstance(value, str) and name not in ("type", "signature"):
            self._texts.setdefault(name, []).append(value)
        elif name != "type":
            self._start[name] = value

    @property
    def broken(self) -> bool:
        """Whether the input of a call is incomplete."""
        return self.call is not None and not (self.closed and isinstance(self._input(), dict))

    def to_json(self) -> JsonObject:
        """Return the block so far; an input that is not JSON stays text."""
        texts = {name: f"{self._start.get(name) or ''}{''.join(parts)}" for name, parts in self._texts.items()}
        block = {**self._start, **texts}
        return {**block, "input": self._input()} if self._json or "input" in block else block

    def _input(self) -> Any:
        written = "".join(self._json)
        if not written.strip():
            return self._start.get("input", {})
        try:
            return read_json(written)
        except InvalidJsonError:
            return written


class MessagesAssembler:
    """The events of one answer so far. Pings and unknown events are ignored."""

    def __init__(self) -> None:
        self._root: JsonObject = {}
        self._usage: JsonObject = {}
        self._blocks: list[BlockAssembler] = []
        self._by_index: dict[int, BlockAssembler] = {}
        self._faults: dict[str, None] = {}
        self._stopped = False
        self._error: Any = None
        self._unreadable = ""

    @property
    def has_content(self) -> bool:
        """Whether there is a block."""
        return bool(self._blocks)

    def take(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield what a listener gets."""
        if isinstance(event, dict):
            yield from self._payload(event)
        elif is_broken_event(event):
            self._unreadable = self._unreadable or event or "an empty event"

    def _payload(self, payload: JsonObject) -> Iterator[Delta]:
        kind = payload.get("type")
        if payload.get("error"):
            self._error = self._error or payload["error"]
        elif kind == "message_start":
            self._root = dict(get_object(payload.get("message")))
            self._count(self._root.get("usage"))
        elif kind == "message_delta":
            self._root |= {name: value for name, value in get_object(payload.get("delta")).items() if value is not None}
            self._count(payload.get("usage"))
        elif kind == "message_stop":
            self._stopped = True
        elif isinstance(kind, str) and kind.startswith("content_block_"):
            yield from self._block(kind, payload)

    def _count(self, usage: Any) -> None:
        """Update the token counts, which are totals, so later values replace earlier ones."""
        self._usage |= {name: value for name, value in get_object(usage).items() if value is not None}

    def _block(self, kind: str, payload: JsonObject) -> Iterator[Delta]:
        index = payload.get("index")
        index = index if isinstance(index, int) else None
        if index is None:
            self._faults["stream_index_missing"] = None
        if kind == "content_block_start":
            yield from self._open(dict(get_object(payload.get("content_block"))), index)
        elif block := self._by_index.get(index) if index is not None else next(reversed(self._blocks), None):
            if kind == "content_block_delta":
                delta = block.add(get_object(payload.get("delta")))
                yield from () if delta is None else (delta,)
            elif kind == "content_block_stop":
                block.closed = True
                if block.call is not None:
                    yield Delta(call=block.call, closed=True)

    def _open(self, start: JsonObject, index: int | None) -> Iterator[Delta]:
        """Add a block, also under a known index, since blocks come one after the other."""
        calls = sum(block.call is not None for block in self._blocks)
        call = calls if start.get("type") == "tool_use" else None
        block = BlockAssembler(start, call)
        self._blocks.append(block)
        if index is not None:
            if index in self._by_index:
                self._faults["stream_index_reused"] = None
            self._by_index[index] = block
        if call is not None:
            yield Delta(call=call, name=get_text(start.get("name")))

    def message(self) -> Message:
        """Return the message so far in chat format."""
        return build_chat_message(self._root, [block.to_json() for block in self._blocks])

    def answer(self) -> ChatAnswer:
        """Return the answer.

        Raises:
            MalformedAnswerError: the events have no answer, an error, or something unreadable.
        """
        if self._error:
            raise MalformedAnswerError("error_object", f"the stream holds an error: {get_error_text(self._error)}")
        faults = [*self._faults, *self._ending()]
        cut = "stream_cut" in faults
        if self._unreadable and not cut:
            raise MalformedAnswerError(
                "not_json", f"an event of the stream is not JSON: {truncate_snippet(self._unreadable)}"
            )
        if not self._root:
            raise MalformedAnswerError("no_message", "the stream holds no message_start")
        blocks = [block.to_json() for block in self._blocks]
        root = {**self._root, "content": blocks, "usage": self._usage or None}
        return parse_messages_answer(
            root, cut=cut, findings=[Finding(fault, _FINDING_MESSAGES[fault]) for fault in faults]
        )

    def _ending(self) -> Iterator[str]:
        """Yield the codes of what is wrong with the end of the stream."""
        said_over = self._stopped or bool(self._root.get("stop_reason"))
        if not said_over and (self._unreadable or any(block.broken for block in self._blocks)):
            yield "stream_cut"
        elif not said_over:
            yield "stream_unfinished"
        elif not self._stopped:
            yield "stream_stop_missing"
        if not self._usage:
            yield "stream_usage_missing"
