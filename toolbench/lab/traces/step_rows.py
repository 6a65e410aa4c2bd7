"""Database row and stored bodies of a step, built from the driver's record."""

from toolbench.engine.bounds import parse_cost, parse_count
from toolbench.engine.types import JsonObject
from toolbench.lab.traces.step_facts import build_exchange_details, build_tool_details, encode_arguments, to_column_text
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep

STEP_COLUMNS = {  # PostgreSQL types by column
    "trial_id": "bigint",
    "execution": "integer",
    "ordinal": "integer",
    "kind": "text",
    "turn": "integer",
    "attempt": "smallint",
    "started_ms": "float8",
    "duration_ms": "float8",
    "first_byte_ms": "float8",
    "first_token_ms": "float8",
    "first_call_ms": "float8",
    "backoff_ms": "float8",
    "retry_reason": "text",
    "url": "text",
    "status": "smallint",
    "error_code": "text",
    "error_message": "text",
    "request_bytes": "integer",
    "response_bytes": "bigint",
    "body_cut": "boolean",
    "masked": "boolean",
    "finish_reason": "text",
    "path": "text",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "cost": "float8",
    "upstream": "text",
    "model_echoed": "text",
    "fingerprint": "text",
    "tool_name": "text",
    "ok": "boolean",
}
_WRITER_COLUMNS = ("trial_id", "execution")  # set by storage.py when it writes the step
_NULL_COLUMNS_OF_BARE_ROW = ("first_byte_ms", "first_token_ms", "first_call_ms", "status")


def build_step_row(step: AnyStep) -> JsonObject:
    """Return the STEP_COLUMNS of a step, except trial_id and execution.

    A row of a tool execution also lacks status, tokens, cost and the times of the first byte, token and call.
    """
    row = _build_exchange_row(step) if isinstance(step, ExchangeStep) else _build_tool_row(step)
    return {
        "ordinal": step.ordinal,
        "turn": step.turn,
        "started_ms": step.started_ms,
        "duration_ms": step.duration_ms,
        **row,
    }


def build_bodies(step: AnyStep) -> tuple[bytes, bytes, bytes]:
    """Return the request body, the response body and the JSON details of a step.

    For a tool execution, the bodies are the arguments and the result.
    """
    if isinstance(step, ExchangeStep):
        return step.request_body, step.response_body, build_exchange_details(step)
    arguments = encode_arguments(step.result.call)
    return arguments, step.result.content.encode("utf-8", "surrogatepass"), build_tool_details(step)


def build_bare_row(step: AnyStep) -> JsonObject:
    """Return the row for a step whose row the database refused: ordinal, turn, kind and attempt, and a note."""
    blank = {name: "" if kind == "text" else 0 for name, kind in STEP_COLUMNS.items() if name not in _WRITER_COLUMNS}
    kind, attempt = ("exchange", step.attempt) if isinstance(step, ExchangeStep) else ("tool", 1)
    identity = {"ordinal": step.ordinal, "turn": step.turn, "kind": kind, "attempt": attempt}
    columns = {
        "error_message": "The database refused the contents of this step.",
        "ok": None,
        "body_cut": True,
        "masked": False,
    }
    return {**blank, **columns, **dict.fromkeys(_NULL_COLUMNS_OF_BARE_ROW), **identity}


def _build_exchange_row(step: ExchangeStep) -> JsonObject:
    turn, error = step.turn_read, step.error
    usage = turn.usage if turn else None
    return {
        "kind": "exchange",
        "attempt": step.attempt,
        "first_byte_ms": step.first_byte_ms,
        "first_token_ms": step.first_token_ms,
        "first_call_ms": step.first_call_ms,
        "backoff_ms": step.backoff_ms,
        "retry_reason": to_column_text(step.retry_reason, 120),
        "url": to_column_text(step.url, 400),
        "status": parse_count(step.status, 32767),
        "error_code": to_column_text(error.code, 60) if error else "",
        "error_message": to_column_text(error.message, 20_000) if error else "",
        "request_bytes": len(step.request_body),
        "response_bytes": step.body_bytes,
        "body_cut": step.body_cut,
        "masked": step.masked,
        "finish_reason": to_column_text(turn.finish_reason, 40) if turn else "",
        "path": turn.method_used[:20] if turn else "",
        "input_tokens": parse_count(usage.input_tokens) if usage else None,
        "output_tokens": parse_count(usage.output_tokens) if usage else None,
        "cost": parse_cost(usage.cost) if usage else None,
        "upstream": to_column_text(turn.upstream, 120) if turn else "",
        "model_echoed": to_column_text(turn.model_echoed, 200) if turn else "",
        "fingerprint": to_column_text(turn.fingerprint, 120) if turn else "",
        "tool_name": "",
        "ok": turn is not None,
    }


def _build_tool_row(step: ToolStep) -> JsonObject:
    envelope = step.result.envelope
    first_error = envelope.errors[0] if envelope.errors else {}
    return {
        "kind": "tool",
        "attempt": 1,
        "backoff_ms": 0,
        "retry_reason": "",
        "url": "",
        "error_code": to_column_text(first_error.get("code"), 60),
        "error_message": to_column_text(first_error.get("message"), 20_000),
        "request_bytes": 0,
        "response_bytes": len(step.result.content.encode("utf-8", "surrogatepass")),
        "body_cut": False,
        "masked": False,
        "finish_reason": "",
        "path": "",
        "upstream": "",
        "model_echoed": "",
        "fingerprint": "",
        "tool_name": to_column_text(step.result.call.name, 200),
        "ok": envelope.ok,
    }
