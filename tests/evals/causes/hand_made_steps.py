"""Hand-made records as the steps that the table of causes reads."""

from tests.evals.records import build_calling_turn, build_result
from toolbench.engine.events import TurnRecord
from toolbench.engine.types import SchemaError
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep

UNREADABLE_CALL = build_result("state_patch", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")


def build_steps(*records: TurnRecord) -> tuple[WireStep, ...]:
    """Return the records as steps, numbered from 1."""
    steps: list[WireStep] = []
    for record in records:
        error, sent = record.failure, record.request.has_tools
        refused = bool(error and error.tool_support)
        code = error.code if error else ""
        steps.append(ExchangeAttempt(len(steps) + 1, record.turn, sent, record.answer, code, refused))
        for result in record.results:
            steps.append(ToolRun(len(steps) + 1, record.turn, result))
    return tuple(steps)


def build_schema_error_turn(*errors: tuple[str, str]) -> TurnRecord:
    schema_errors = [SchemaError(path, kind, "") for path, kind in errors]
    return build_calling_turn(0, build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=schema_errors))
