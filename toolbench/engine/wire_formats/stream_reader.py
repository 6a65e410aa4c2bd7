"""Decoder of a streamed answer: deltas become the same Turn as an unstreamed answer.

A listener gets each Delta as it comes; `partial` is the message so far.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_text
from toolbench.engine.types import Finding, JsonObject, Message, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer, decode_chat_answer, get_error_text, parse_chat_answer
from toolbench.engine.wire_formats.content_parts import get_thinking_text, join_content, split_content_parts
from toolbench.engine.wire_formats.delta_calls import CallAssembler, CallListAssembler
from toolbench.engine.wire_formats.merge_chunks import merge_chunks
from toolbench.engine.wire_formats.parse_answer import get_message_text, truncate_snippet
from toolbench.engine.wire_formats.sse import DONE, EventOrBodyReader, Payload, is_broken_event
from toolbench.engine.wire_formats.usage import find_usage

_SINGLE_FIELDS = ("model", "provider", "system_fingerprint")
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_FINDING_MESSAGES = {
    "stream_index_missing": "Parts of tool calls came without an index.",
    "stream_index_reused": "Several calls came under one index; their ids, or arguments that ended, told them apart.",
    "stream_name_repeated": "A call's name came again with later parts; it was taken once.",
    "stream_done_missing": "The stream ended without [DONE].",
    "stream_unfinished": "The stream ended without a finish reason and without [DONE].",
    "stream_cut": "The stream broke off in the middle; no call of this answer was executed.",
    "stream_usage_missing": "The stream did not say how many tokens were used.",
    "stream_not_streamed": "A stream was asked for and the answer came in one piece.",
}


class EventAssembler(Protocol):
    """Assembles the events of one answer."""

    @property
    def has_content(self) -> bool:
        """Whether there is more than a role."""
        ...

    def take(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield what a listener gets."""
        ...

    def message(self) -> Message:
        """Return the message so far in chat format."""
        ...

    def answer(self) -> ChatAnswer:
        """Return the answer.

        Raises:
            MalformedAnswerError: the events have no answer, an error, or something unreadable.
        """
        ...


class StreamDecoder:
    """Decoder of a streamed answer; an answer that came unstreamed nevertheless is decoded as such.

    Args:
        read: called with the complete answer.
        heard: called with each part.
        assemble: makes an assembler of events; None for OpenAI's.
        whole: decodes an unstreamed answer.
    """

    def __init__(
        self,
        read: Callable[[ChatAnswer], Turn],
        on_delta: Callable[[Delta], None] = lambda delta: None,
        *,
        assemble: Callable[[], EventAssembler] | None = None,
        whole: Callable[[bytes], ChatAnswer] = decode_chat_answer,
    ) -> None:
        self._read = read
        self._heard = on_delta
        self._assemble = assemble or ChatAssembler
        self._decode_whole = whole
        self._begin()

    def _begin(self) -> None:
        self._answer = EventOrBodyReader()
        self._assembly = self._assemble()

    @property
    def partial(self) -> Message:
        """The message so far, with the arguments so far (see streaming_answer.StreamingCall); {} before any content."""
        return self._assembly.message() if self._assembly.has_content else {}

    def feed(self, chunk: bytes) -> None:
        """Decode the next bytes."""
        self._take(self._answer.feed(chunk))

    def close(self) -> Turn:
        """Return the turn; the decoder is then empty and ready for another attempt.

        Raises:
            MalformedAnswerError: the bytes are not an answer.
        """
        self._take(self._answer.close())
        whole, assembly = self._answer.whole, self._assembly
        self._begin()
        return self._read(
            _build_whole_answer(self._decode_whole(bytes(whole))) if whole is not None else assembly.answer()
        )

    def _take(self, events: Iterator[Payload]) -> None:
        for event in events:
            for delta in self._assembly.take(event):
                self._heard(delta)


def _build_whole_answer(answer: ChatAnswer) -> ChatAnswer:
    finding = Finding("stream_not_streamed", _FINDING_MESSAGES["stream_not_streamed"])
    return replace(answer, findings=(finding, *answer.findings))


class ChatAssembler:
    """The events of one answer so far."""

    def __init__(self) -> None:
        self._root: JsonObject = {}
        self._fields: dict[str, list[Any]] = {}
        self._calls = CallListAssembler()
        self._older_call: CallAssembler | None = None  # in the field function_call
        self._speaks_of: CallAssembler | None = None  # the call that was written last, if nothing was said after it
        self._finish = ""
        self._done = False
        self._error: Any = None
        self._unreadable = ""
        self._has_choice = False

    @property
    def has_content(self) -> bool:
        """Whether there is more than a role."""
        return bool(self._all_calls) or any(key != "role" for key in self._fields)

    @property
    def _all_calls(self) -> list[CallAssembler]:
        return [*([self._older_call] if self._older_call else []), *self._calls.calls]

    def take(self, event: Payload) -> Iterator[Delta]:
        """Add an event and yield what a listener gets."""
        if isinstance(event, dict):
            yield from self._payload(event)
        elif is_broken_event(event):
            self._unreadable = self._unreadable or event or "an empty event"
        elif event.strip() == DONE:
            self._done = True

    def _payload(self, payload: JsonObject) -> Iterator[Delta]:
        for key in _SINGLE_FIELDS:
            self._root[key] = self._root.get(key) or payload.get(key)
        self._root["usage"] = find_usage(payload) or self._root.get("usage")
        given = payload.get("choices")
        choices = given if isinstance(given, list) else []
        choice = next(
            (choice for choice in choices if isinstance(choice, dict) and choice.get("index") in (0, None)), {}
        )
        self._error = self._error or payload.get("error") or choice.get("error")
        if choice:
            yield from self._choice(choice)

    def _choice(self, choice: JsonObject) -> Iterator[Delta]:
        self._has_choice = True
        self._finish = get_text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        whole = choice.get("message")
        if not isinstance(delta, dict) and isinstance(whole, dict) and not self._fields and not self._all_calls:
            delta = whole
        if isinstance(delta, dict):
            yield from self._delta(delta)

    def _delta(self, delta: JsonObject) -> Iterator[Delta]:
        for key, value in delta.items():
            if key not in ("tool_calls", "function_call") and value is not None:
                self._fields.setdefault(key, []).append(value)
        text, thought = (
            get_message_text(delta),
            next((_as_text(delta[key]) for key in _REASONING_FIELDS if key in delta), ""),
        )
        thought += get_thinking_text(delta.get("content"))
        if text or thought:
            self._speaks_of = None
            yield Delta(text=text, reasoning=thought)
        function = delta.get("function_call")
        if isinstance(function, dict):
            older = self._speaks_of = self._older_call = self._older_call or CallAssembler(0)
            piece = older.add({"function": function})
            yield Delta(call=0, name=older.name, arguments=piece, closed=older.closed)
        for call, piece in self._calls.add(delta.get("tool_calls")):
            self._speaks_of = call
            yield Delta(call=call.place, name=call.name, arguments=piece, closed=call.closed)

    def message(self) -> Message:
        """Return the message so far in OpenAI's format."""
        message: Message = {"role": "assistant", "content": None}
        message |= {key: _join_chunks(key, pieces) for key, pieces in self._fields.items()}
        if self._older_call:
            message["function_call"] = self._older_call.to_json()["function"]
        if calls := self._calls.to_json():
            message["tool_calls"] = calls[0] if self._calls.lone and len(calls) == 1 else calls
        return split_content_parts(message)

    def answer(self) -> ChatAnswer:
        """Return the answer.

        Raises:
            MalformedAnswerError: the events have no answer, an error, or something unreadable.
        """
        if self._error:
            raise MalformedAnswerError("error_object", f"the stream holds an error: {get_error_text(self._error)}")
        faults = [*self._calls.faults, *self._ending()]
        cut = "stream_cut" in faults
        if self._unreadable and not cut:
            raise MalformedAnswerError(
                "not_json", f"an event of the stream is not JSON: {truncate_snippet(self._unreadable)}"
            )
        choices = [{"message": self.message(), "finish_reason": self._finish}] if self._has_choice else []
        answer = parse_chat_answer({**self._root, "choices": choices}, cut=cut)
        found = tuple(Finding(fault, _FINDING_MESSAGES[fault], "$.choices[0].delta") for fault in faults)
        return replace(answer, findings=(*found, *answer.findings))

    def _ending(self) -> Iterator[str]:
        """Yield the codes of what is wrong with the end of the stream.

        Gateways send [DONE] also for upstreams that broke off.
        """
        calls, said_over = self._all_calls, self._done or bool(self._finish)
        broken_off = not self._finish and self._speaks_of is not None and self._speaks_of.broken_off
        if broken_off or (not said_over and (self._unreadable or any(not call.readable for call in calls))):
            yield "stream_cut"
        elif not said_over:
            yield "stream_unfinished"
        elif not self._done:
            yield "stream_done_missing"
        if not self._root.get("usage"):
            yield "stream_usage_missing"


def _join_chunks(key: str, pieces: list[Any]) -> Any:
    if len(pieces) > 1 and all(isinstance(piece, str) for piece in pieces) and key != "role":
        return "".join(pieces)
    if key == "content" and len(pieces) > 1:
        return join_content(pieces)
    return merge_chunks(pieces, key)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(get_text(part.get("text")) for part in value if isinstance(part, dict))
    return get_text(value)
