"""Events of the loop, with the case study's names and payloads.

Toolbench adds the events `llm_delta` and `tool_not_executed`, and to `tool_call_end` the ToolResult as `result`. Events
do not have the durations of requests, which the listener measures. The `elapsed_ms` of a tool call is the duration in
its tool outcome.
"""

from contextlib import suppress
from typing import Any

from toolbench.engine.arguments import measure_arguments
from toolbench.engine.events import Delta, EmitEvent, Event, ExchangeError, OnDelta, Request, ToolResult
from toolbench.engine.loop.dispatch import DispatchedCall
from toolbench.engine.loop.run_state import RunState
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.strict_json import count_utf8_bytes
from toolbench.engine.types import JsonObject, Turn
from toolbench.engine.wire_formats.usage import build_usage_json


class EventEmitter:
    """Emitter of loop events to a listener.

    Exceptions of the listener are suppressed, so that they cannot end a run.

    With `is_brief`, these events are not emitted: `llm_request_start`, `llm_request_end`, `tool_call_start` and
    `final`.
    """

    def __init__(self, setup: TurnSetup, emit: EmitEvent, *, is_brief: bool = False) -> None:
        self._setup = setup
        self._emit_to_listener = emit
        self._is_brief = is_brief
        self._policies: JsonObject = {
            "tool_use_mode": setup.policy.tool_use_mode,
            "tool_failure_policy": setup.policy.tool_failure_policy,
        }

    def _emit_event(self, event_type: str, turn: int, **data: Any) -> None:
        with suppress(Exception):
            self._emit_to_listener(Event(event_type, turn, data))

    def emit_request_start(self, request: Request, history_count: int, attempts_left: int) -> None:
        """Emit `llm_request_start`.

        Args:
            request: the request.
            history_count: number of messages of the conversation without the system message.
            attempts_left: how many repetitions of this turn without tools the policy still allows.
        """
        if self._is_brief:
            return
        are_tools_sent = request.has_tools
        self._emit_event(
            "llm_request_start",
            request.turn,
            **self._policies,
            tools_enabled=are_tools_sent,
            messages_count=history_count + bool(self._setup.system.strip()),
            tools_count=len(self._setup.tools_json) if are_tools_sent else 0,
            tool_choice=self._setup.policy.tool_choice if are_tools_sent else None,
            request_attempts_left=attempts_left,
        )

    def build_delta_listener(self, turn: int) -> OnDelta:
        """Return a function that emits each part of a streamed answer as `llm_delta`.

        The payload has the keys `text` and `reasoning`, or, for a part of a call, `call` (its index from 0), `name`,
        `arguments` (the new part) and `closed` (whether the arguments are complete).
        """

        def emit_delta(delta: Delta) -> None:
            payload: JsonObject = {"text": delta.text, "reasoning": delta.reasoning}
            if delta.call_index is not None:
                payload = {
                    "call": delta.call_index,
                    "name": delta.name,
                    "arguments": delta.arguments,
                    "closed": delta.is_closed,
                }
            self._emit_event("llm_delta", turn, **payload)

        return emit_delta

    def emit_request_error(self, turn: int, error: ExchangeError, has_tools: bool) -> None:
        """Emit `llm_request_error`."""
        self._emit_event(
            "llm_request_error",
            turn,
            tools_enabled=has_tools,
            status=error.status,
            error_class=error.code,
            message=error.message,
        )

    def emit_request_retry(self, turn: int, attempts_left: int) -> None:
        """Emit `llm_request_retry`, before the turn is repeated without tools.

        Args:
            turn: number of the turn, from 0.
            attempts_left: how many repetitions the policy allows after this one.
        """
        self._emit_event("llm_request_retry", turn, tools_enabled=False, request_attempts_left=attempts_left)

    def emit_request_end(self, turn: int, answer: Turn, has_tools: bool) -> None:
        """Emit `llm_request_end`."""
        if self._is_brief:
            return
        calls = [
            {"id": call.id, "name": call.name, "arguments_bytes": measure_arguments(call.arguments)}
            for call in answer.calls
        ]
        self._emit_event(
            "llm_request_end",
            turn,
            **self._policies,
            tools_enabled=has_tools,
            finish_reason=answer.finish_reason,
            assistant_content_bytes=count_utf8_bytes(answer.text),
            usage=build_usage_json(answer.usage),
            tool_calls_count=len(calls),
            ignored_tool_calls_count=answer.ignored_call_count,
            tool_calls=calls,
        )

    def emit_call_start(self, turn: int, dispatched_call: DispatchedCall) -> None:
        """Emit `tool_call_start`."""
        if self._is_brief:
            return
        self._emit_event(
            "tool_call_start",
            turn,
            tool_call_id=dispatched_call.call.id,
            name=dispatched_call.call.name,
            arguments_bytes=dispatched_call.read_arguments.size_bytes,
            parse_status=dispatched_call.read_arguments.status,
        )

    def emit_call_end(self, turn: int, result: ToolResult) -> None:
        """Emit `tool_call_end`."""
        self._emit_event(
            "tool_call_end",
            turn,
            tool_call_id=result.call.id,
            name=result.call.name,
            ok=result.envelope.ok,
            elapsed_ms=round(result.duration_ms),
            output_bytes=count_utf8_bytes(result.content),
            output_replaced=result.is_output_replaced,
            error_codes=[error["code"] for error in result.envelope.errors],
            result=result,
        )

    def emit_fix_empty_final(self, turn: int) -> None:
        """Emit `fix_empty_final`, before the re-prompt for a blank final answer."""
        policy = self._setup.policy
        self._emit_event(
            "fix_empty_final",
            turn,
            disable_tools=policy.fix_empty_final_disable_tools,
            user_text_bytes=count_utf8_bytes(policy.fix_empty_final_user_text),
        )

    def emit_tool_not_executed(self, turn: int, answer: Turn) -> None:
        """Emit `tool_not_executed` for a call that could not run, before the re-prompt that quotes the error."""
        self._emit_event("tool_not_executed", turn, reason=answer.unexecuted_reason, ask_again=True)

    def emit_final(self, turn: int, state: RunState, text: str) -> None:
        """Emit `final`."""
        if self._is_brief:
            return
        self._emit_event(
            "final",
            turn,
            assistant_content_bytes=count_utf8_bytes(text),
            any_tool_calls_seen=state.has_calls,
            any_tool_success_seen=state.has_success,
        )
