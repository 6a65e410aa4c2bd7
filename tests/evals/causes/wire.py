"""Hand-made records as the steps that the table of causes reads."""

from tests.evals.records import calling, result
from toolbench.engine.events import TurnRecord
from toolbench.engine.messages import SchemaError
from toolbench.evals.causes.step_types import Exchanged, Ran, WireStep

BROKEN = result("state_patch", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")


def steps(*records: TurnRecord) -> tuple[WireStep, ...]:
    """The records as steps, numbered from 1."""
    found: list[WireStep] = []
    for record in records:
        error, sent = record.failure, record.request.tools_sent
        refused = bool(error and error.tool_support)
        code = error.code if error else ""
        found.append(Exchanged(len(found) + 1, record.turn, sent, record.answer, code, refused))
        for one in record.results:
            found.append(Ran(len(found) + 1, record.turn, one))
    return tuple(found)


def wrong(*errors: tuple[str, str]) -> TurnRecord:
    broken = [SchemaError(path, kind, "") for path, kind in errors]
    return calling(0, result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=broken))
