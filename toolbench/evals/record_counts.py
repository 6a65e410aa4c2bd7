"""What can be read off a finished record without knowing the scenario."""

from collections.abc import Iterator

from toolbench.engine.events import EndReason, LoopResult, ToolResult, TurnRecord
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import CALL_ATTEMPT_CODES, JsonObject, Turn

TAG_TRANSFORM = "assistant_content_tool_call_tags_to_tool_calls"
CUT_FINISH_REASON = "length"
FALLBACK_PATH = "json_fallback"
MODEL_FORMAT_PATH = "model_format"  # of providers/data/outcomes.json
MESSAGE_PATH = "$.choices[0].message"
CONTENT_PATH = f"{MESSAGE_PATH}.content"
CALLS_PATH = f"{MESSAGE_PATH}.tool_calls"
FINISH_REASON_PATH = "$.choices[0].finish_reason"
_CALL_TAG = "<tool_call"


@light(frozen=True, slots=True)
class RecordedCall:
    """One result with its place: the turn (from 0) and the call's place in that turn (from 0)."""

    turn: int
    place: int
    result: ToolResult

    @property
    def tool(self) -> str:
        return self.result.envelope.tool_name or self.result.call.name

    @property
    def ok(self) -> bool:
        return self.result.envelope.ok


def iter_calls(ended: LoopResult) -> Iterator[RecordedCall]:
    """Every call that was kept, in order."""
    for record in ended.turns:
        for place, result in enumerate(record.results):
            yield RecordedCall(record.turn, place, result)


def list_error_codes(result: ToolResult) -> tuple[str, ...]:
    return tuple(str(error.get("code", "")) for error in result.envelope.errors)


def has_error(ended: LoopResult, code: str) -> bool:
    return any(code in list_error_codes(one.result) for one in iter_calls(ended))


def count_calls(record: TurnRecord) -> int:
    return len(record.answer.calls) if record.answer else 0


def has_calls(ended: LoopResult) -> bool:
    return any(count_calls(record) for record in ended.turns)


def is_without_tools(ended: LoopResult) -> bool:
    """True when the model was never offered a tool, neither on the wire nor in the prompt."""
    return bool(ended.turns) and not any(record.request.tools_sent for record in ended.turns)


def has_answer(ended: LoopResult) -> bool:
    """True when the model said something: a dead or refusing endpoint has not."""
    return ended.end is not EndReason.PROVIDER_ERROR and any(record.answer for record in ended.turns)


def has_call_attempt(answer: Turn) -> bool:
    """True for calls, and for a text in which the engine found one that it could not or must not run."""
    return bool(answer.calls_found) or any(finding.code in CALL_ATTEMPT_CODES for finding in answer.findings)


def has_call_tag(answer: Turn) -> bool:
    """True for a text with the tag around calls that many chat templates ask for."""
    return _CALL_TAG in answer.text


def count_trial(ended: LoopResult) -> JsonObject:
    """Numerators and denominators of the named rates, for one trial.

    Calls refused for their size are in neither `calls` nor `valid_calls`: nobody checked them against the schema. A
    call that had to be repaired first is not valid either: the model wrote it otherwise."""
    checked = [one.result for one in iter_calls(ended) if one.result.parse_status != "too_large"]
    answers = [(record, record.answer) for record in ended.turns if record.answer]
    calling = sum(has_call_attempt(answer) for _, answer in answers)
    return {
        "calls": len(checked),
        "valid_calls": sum(is_valid_call(result) for result in checked)
        - sum(_count_repaired_valid(r, a) for r, a in answers),
        "repaired_calls": sum(len(_list_repaired_results(record, answer)) for record, answer in answers),
        "structured_answers": sum(_is_structured(answer) for _, answer in answers),
        "calling_answers": calling,
        "parse_error_turns": sum(_has_parse_error(record, answer) for record, answer in answers),
        "calling_turns": calling,
        "parse_error_ends": int(_is_ended_by_parse_error(ended)),
        "fallback_turns": sum(answer.mode == FALLBACK_PATH for _, answer in answers),
        "ignored_calls": sum(answer.ignored_calls for _, answer in answers),
    }


def is_valid_call(result: ToolResult) -> bool:
    """A call that could be read, keeps to its schema and names a tool that was offered."""
    return (
        result.parse_status == "ok" and not result.schema_errors and "TOOL_NOT_ALLOWED" not in list_error_codes(result)
    )


def _list_repaired_results(record: TurnRecord, answer: Turn) -> list[ToolResult]:
    """The results of calls whose arguments were readable only after a repair."""
    places = {error.call for error in answer.parse_errors if error.mended}
    return [result for place, result in enumerate(record.results) if place in places]


def _count_repaired_valid(record: TurnRecord, answer: Turn) -> int:
    return sum(is_valid_call(result) for result in _list_repaired_results(record, answer))


def _is_ended_by_parse_error(ended: LoopResult) -> bool:
    """Nothing that we cannot read ends a run; a server that cannot read its own model's words may."""
    return ended.end is EndReason.PROVIDER_ERROR and ended.error is not None and ended.error.code == MODEL_FORMAT_PATH


def _is_structured(answer: Turn) -> bool:
    read_from_tags = any(change.name == TAG_TRANSFORM for change in answer.changes)
    return bool(answer.calls_found) and answer.path == "tool_use" and not read_from_tags


def _has_parse_error(record: TurnRecord, answer: Turn) -> bool:
    if any(result.parse_status == "invalid_json" for result in record.results):
        return True
    return bool(answer.parse_errors) or any(finding.code == "parse_error" for finding in answer.findings)
