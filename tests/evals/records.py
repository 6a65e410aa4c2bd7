"""Builders of the loop results that tests of judging need."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, Request, ToolResult, TurnRecord
from toolbench.engine.types import Envelope, Finding, JsonObject, SchemaError, ToolCall, Turn, Usage
from toolbench.evals.agents.workspaces import list_columns
from toolbench.evals.types import Workspace


def build_request(turn: int, *, tools_sent: bool = True) -> Request:
    return Request(turn, "chat/completions", b"{}", tools_sent)


def build_result(
    name: str,
    arguments: Any,
    *,
    ok: bool = True,
    code: str = "",
    parse_status: str = "ok",
    schema_errors: Sequence[SchemaError] = (),
) -> ToolResult:
    """Return a call with its result, which is a failure if `code` is given."""
    errors = ({"code": code, "message": f"{code} in words"},) if code else ()
    envelope = Envelope(ok and not code, name, errors=errors)
    wire = arguments if isinstance(arguments, str) else json.dumps(arguments)
    parsed = arguments if parse_status == "ok" else None
    return ToolResult(
        ToolCall("call_1", name, wire), parsed, parse_status, envelope, "", not code, schema_errors=tuple(schema_errors)
    )


def run_tool(workspace: Workspace, name: str, arguments: dict[str, Any]) -> ToolResult:
    """Run a call in the workspace and return its result, as the dispatcher does."""
    try:
        value = workspace.call(name, arguments, "call_1")
    except ToolArgumentError:
        return build_result(name, arguments, code="ARGUMENT_ERROR")
    if isinstance(value, dict) and value.get("ok") is False:
        return build_result(name, arguments, code=value["errors"][0]["code"])
    return build_result(name, arguments)


def build_calling_turn(turn: int, *results: ToolResult, finish: str = "tool_calls", ignored: int = 0) -> TurnRecord:
    calls = tuple(result.call for result in results)
    answer = Turn({}, "", calls, calls, ignored_call_count=ignored, finish_reason=finish)
    return TurnRecord(turn, build_request(turn), answer, results=results)


def build_text_turn(
    turn: int, text: str, *, finish: str = "stop", tools_sent: bool = True, finding: str = ""
) -> TurnRecord:
    """Return a turn without calls; `finding` is the code of the engine's finding on it."""
    findings = (Finding(finding, f"The engine found {finding}.", "$.content"),) if finding else ()
    answer = Turn({}, text, finish_reason=finish, method_used="text", findings=findings)
    return TurnRecord(turn, build_request(turn, tools_sent=tools_sent), answer)


def build_cut_turn(turn: int, text: str, *results: ToolResult) -> TurnRecord:
    """Return a turn whose stream broke off after the text, or in the last call of these results; no call ran."""
    record = build_text_turn(turn, text, finish="", finding="stream_cut")
    assert record.answer is not None
    calls = tuple(result.call for result in results)
    return replace(record, answer=replace(record.answer, calls_found=calls, is_truncated=True))


def build_failed_turn(turn: int, error: ExchangeError) -> TurnRecord:
    return TurnRecord(turn, build_request(turn), None, failure=error)


def build_ended(*turns: TurnRecord, end: EndReason = EndReason.FINAL, error: ExchangeError | None = None) -> LoopResult:
    """Return a loop result with the text of the last answer as its final text."""
    last = turns[-1].answer if turns else None
    return LoopResult(end, last.text if last else "", (), turns, Usage(), error=error)


def build_right_arguments(agent: str, values: Mapping[str, Any]) -> JsonObject:
    """Return the right arguments of the agent's call, from an instance's values."""
    rest = [column for column in list_columns(values["workspace_id"]) if column not in values["columns"]]
    return {
        "intent": {"workspace_id": values["workspace_id"], "confidence": 0.9, "reasoning": "by its words"},
        "table": {"relevant_tables": values["tables"], "reasoning": "by its words"},
        "column": {"relevant_columns": values["columns"], "irrelevant_columns": rest, "reasoning": "by its words"},
        "sql": {"sql_query": values["sql"], "explanation": "one value", "tables_used": values["tables"]},
    }[agent]
