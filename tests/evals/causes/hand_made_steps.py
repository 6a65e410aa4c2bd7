"""Hand-made records as the steps that the table of causes reads."""

from tests.evals.records import build_calling_turn, build_result
from toolbench.engine.events import TurnRecord
from toolbench.engine.types import SchemaError
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep

UNREADABLE_CALL = build_result("state_patch", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")


def build_steps(*records: TurnRecord) -> tuple[WireStep, ...]:
    """The records as steps, numbered from 1."""
    found: list[WireStep] = []
    for record in records:
        error, sent = record.failure, record.request.has_tools
        refused = bool(error and error.tool_support)
        code = error.code if error else ""
        found.append(ExchangeAttempt(len(found) + 1, record.turn, sent, record.answer, code, refused))
        for result in record.results:
            found.append(ToolRun(len(found) + 1, record.turn, result))
    return tuple(found)


def build_schema_error_turn(*errors: tuple[str, str]) -> TurnRecord:
    broken = [SchemaError(path, kind, "") for path, kind in errors]
    return build_calling_turn(0, build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=broken))
