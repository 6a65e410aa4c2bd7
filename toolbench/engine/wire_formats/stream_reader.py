"""Decoder of a streamed answer.

Its result is the Turn that the same answer gives without streaming, with further findings about the stream. A listener
gets each Delta when it is received; `StreamDecoder.partial` is the message so far.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolbench.engine.events import Delta
from toolbench.engine.strict_json import get_text
from toolbench.engine.types import Finding, JsonObject, Message, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer, decode_chat_answer, parse_chat_answer
from toolbench.engine.wire_formats.content_parts import get_thinking_text, join_content, split_content_parts
from toolbench.engine.wire_formats.delta_calls import CallAssembler, CallListAssembler
from toolbench.engine.wire_formats.event_assembly import SHARED_FINDING_MESSAGES, EventAssembler
from toolbench.engine.wire_formats.merge_chunks import merge_chunks
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.sse import EventOrBodyReader, Payload
from toolbench.engine.wire_formats.usage import find_usage

_SINGLE_FIELDS = ("model", "provider", "system_fingerprint")  # fields of events whose first value is kept
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_FINDING_MESSAGES = {
    **SHARED_FINDING_MESSAGES,
    "stream_index_missing": "Parts of tool calls have no index.",
    "stream_index_reused": "Several calls have one index; ids or complete arguments showed where each begins.",
    "stream_id_changed": "Parts of a call have different ids; the first id was kept.",
    "stream_name_repeated": "Later parts of a call repeat its name; it was read once.",
    "stream_done_missing": "The stream ended without [DONE].",
    "stream_unfinished": "The stream ended without a finish reason and without [DONE].",
    "stream_not_streamed": "A stream was requested, but the answer was not streamed.",
}


class StreamDecoder:
    """Decoder of a streamed answer; an answer that was sent unstreamed nevertheless is decoded too.

    Args:
        read_answer: parses the text and calls of the complete answer.
        on_delta: called with each Delta of a streamed answer.
        build_assembler: builds an assembler of events; None for that of chat completions.
        decode_body: decodes an unstreamed answer.
    """

    def __init__(
        self,
        read_answer: Callable[[ChatAnswer], Turn],
        on_delta: Callable[[Delta], None] = lambda delta: None,
        *,
        build_assembler: Callable[[], EventAssembler] | None = None,
        decode_body: Callable[[bytes], ChatAnswer] = decode_chat_answer,
    ) -> None:
        self._read_answer = read_answer
        self._on_delta = on_delta
        self._build_assembler = build_assembler or ChatAssembler
        self._decode_body = decode_body
        self._reset()

    def _reset(self) -> None:
        self._event_reader = EventOrBodyReader()
        self._assembler = self._build_assembler()

    @property
    def partial(self) -> Message:
        """The message so far, with the arguments of its calls as received; {} before any content."""
        return self._assembler.build_message() if self._assembler.has_content else {}

    def feed(self, chunk: bytes) -> None:
        """Decode the next bytes."""
        self._add_events(self._event_reader.feed(chunk))

    def close(self) -> Turn:
        """Return the turn; the decoder is then empty and ready for another attempt.

        Raises:
            MalformedAnswerError: the bytes are no readable answer, or contain an error.
        """
        self._add_events(self._event_reader.close())
        body, assembler = self._event_reader.body, self._assembler
        self._reset()
        return self._read_answer(
            _add_not_streamed_finding(self._decode_body(bytes(body))) if body is not None else assembler.build_answer()
        )

    def _add_events(self, events: Iterator[Payload]) -> None:
        for event in events:
            for delta in self._assembler.add_event(event):
                self._on_delta(delta)


def _add_not_streamed_finding(answer: ChatAnswer) -> ChatAnswer:
    finding = Finding("stream_not_streamed", _FINDING_MESSAGES["stream_not_streamed"])
    return replace(answer, findings=(finding, *answer.findings))


class ChatAssembler(EventAssembler):
    """Assembler of the events of one chat completions answer."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks_by_field: dict[str, list[Any]] = {}
        self._calls = CallListAssembler()
        self._fault_codes = self._calls.fault_codes
        self._legacy_call: CallAssembler | None = None  # call in the deprecated field function_call
        self._last_written_call: CallAssembler | None = None  # call of the last delta; None after text or reasoning
        self._finish_reason = ""
        self._has_choice = False

    @property
    def has_content(self) -> bool:
        """Whether there is more than a role."""
        return bool(self._all_calls) or any(key != "role" for key in self._chunks_by_field)

    @property
    def _all_calls(self) -> list[CallAssembler]:
        return [*([self._legacy_call] if self._legacy_call else []), *self._calls.calls]

    def _add_payload(self, payload: JsonObject) -> Iterator[Delta]:
        """Add the data of an event and yield its deltas; only the choice with index 0 or without an index counts."""
        for key in _SINGLE_FIELDS:
            self._root[key] = self._root.get(key) or payload.get(key)
        self._root["usage"] = find_usage(payload) or self._root.get("usage")
        raw_choices = payload.get("choices")
        choices = raw_choices if isinstance(raw_choices, list) else []
        choice = next(
            (choice for choice in choices if isinstance(choice, dict) and choice.get("index") in (0, None)), {}
        )
        self._error = self._error or payload.get("error") or choice.get("error")
        if choice:
            yield from self._add_choice(choice)

    def _add_choice(self, choice: JsonObject) -> Iterator[Delta]:
        """Add a choice and yield its deltas.

        If no content was received before, a complete message in place of a delta counts as a delta.
        """
        self._has_choice = True
        self._finish_reason = get_text(choice.get("finish_reason")) or self._finish_reason
        delta = choice.get("delta")
        message = choice.get("message")
        if (
            not isinstance(delta, dict)
            and isinstance(message, dict)
            and not self._chunks_by_field
            and not self._all_calls
        ):
            delta = message
        if isinstance(delta, dict):
            yield from self._add_delta(delta)

    def _add_delta(self, delta: JsonObject) -> Iterator[Delta]:
        """Add the delta of a choice and yield the Deltas for the listener."""
        for key, value in delta.items():
            if key not in ("tool_calls", "function_call") and value is not None:
                self._chunks_by_field.setdefault(key, []).append(value)
        text, reasoning = (
            get_message_text(delta),
            next((part for key in _REASONING_FIELDS if (part := _join_text(delta.get(key)))), ""),
        )
        reasoning += get_thinking_text(delta.get("content"))
        if text or reasoning:
            self._last_written_call = None
            yield Delta(text=text, reasoning=reasoning)
        function = delta.get("function_call")
        if isinstance(function, dict):
            legacy_call = self._last_written_call = self._legacy_call = self._legacy_call or CallAssembler(0)
            arguments_chunk = legacy_call.add_delta({"function": function})
            yield Delta(call_index=0, name=legacy_call.name, arguments=arguments_chunk, is_closed=legacy_call.is_closed)
        for call, arguments_chunk in self._calls.add_deltas(delta.get("tool_calls")):
            self._last_written_call = call
            yield Delta(call_index=call.call_index, name=call.name, arguments=arguments_chunk, is_closed=call.is_closed)

    def build_message(self) -> Message:
        """Return the message so far in chat format."""
        message: Message = {"role": "assistant", "content": None}
        message |= {key: _join_chunks(key, chunks) for key, chunks in self._chunks_by_field.items()}
        if self._legacy_call:
            message["function_call"] = self._legacy_call.to_json()["function"]
        if calls := self._calls.to_json():
            message["tool_calls"] = calls[0] if self._calls.is_single_object and len(calls) == 1 else calls
        return split_content_parts(message)

    def _build_answer(self, fault_codes: Sequence[str], *, is_truncated: bool) -> ChatAnswer:
        """Return the answer with a finding for each code."""
        choices = [{"message": self.build_message(), "finish_reason": self._finish_reason}] if self._has_choice else []
        answer = parse_chat_answer({**self._root, "choices": choices}, is_truncated=is_truncated)
        stream_findings = tuple(Finding(code, _FINDING_MESSAGES[code], "$.choices[0].delta") for code in fault_codes)
        return replace(answer, findings=(*stream_findings, *answer.findings))

    def _list_end_fault_codes(self) -> Iterator[str]:
        """Yield the finding codes for faults at the end of the stream.

        A truncated last call gives `stream_cut` also after [DONE], since gateways send [DONE] even if the answer of
        their upstream server was truncated.
        """
        calls, has_end = self._all_calls, self._has_done or bool(self._finish_reason)
        is_call_truncated = (
            not self._finish_reason and self._last_written_call is not None and self._last_written_call.is_truncated
        )
        if is_call_truncated or (
            not has_end and (self._unreadable_text or any(not call.is_readable for call in calls))
        ):
            yield "stream_cut"
        elif not has_end:
            yield "stream_unfinished"
        elif not self._has_done:
            yield "stream_done_missing"
        if not self._root.get("usage"):
            yield "stream_usage_missing"


def _join_chunks(key: str, chunks: list[Any]) -> Any:
    """Return the value of a message's field from its chunks.

    Texts are joined, except in the fields role and name, which some servers repeat in each delta. Content with lists of
    parts is joined to one list if it has thinking, otherwise to a text. All other values are merged.
    """
    if len(chunks) > 1 and all(isinstance(chunk, str) for chunk in chunks) and key not in ("role", "name"):
        return "".join(chunks)
    if key == "content" and len(chunks) > 1:
        return join_content(chunks)
    return merge_chunks(chunks, key)


def _join_text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(get_text(part.get("text")) for part in value if isinstance(part, dict))
    return get_text(value)
