"""What can be read off a finished record without knowing the scenario."""

from collections.abc import Iterator

from toolbench.engine.events import End, Ended, ToolResult, TurnRecord
from toolbench.engine.messages import ATTEMPTS, JsonObject, Turn
from toolbench.engine.values import light

TAG_TRANSFORM = "assistant_content_tool_call_tags_to_tool_calls"
CUT = "length"
FALLBACK = "json_fallback"
MODEL_FORMAT = "model_format"  # of providers/data/outcomes.json
MESSAGE = "$.choices[0].message"
CONTENT = f"{MESSAGE}.content"
CALLS = f"{MESSAGE}.tool_calls"
FINISH = "$.choices[0].finish_reason"
_TAG = "<tool_call"


@light(frozen=True, slots=True)
class Called:
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


def called(ended: Ended) -> Iterator[Called]:
    """Every call that was kept, in order."""
    for record in ended.turns:
        for place, result in enumerate(record.results):
            yield Called(record.turn, place, result)


def error_codes(result: ToolResult) -> tuple[str, ...]:
    return tuple(str(error.get("code", "")) for error in result.envelope.errors)


def saw_error(ended: Ended, code: str) -> bool:
    return any(code in error_codes(one.result) for one in called(ended))


def calls_in(record: TurnRecord) -> int:
    return len(record.answer.calls) if record.answer else 0


def any_calls(ended: Ended) -> bool:
    return any(calls_in(record) for record in ended.turns)


def tools_off(ended: Ended) -> bool:
    """True when the model was never offered a tool, neither on the wire nor in the prompt."""
    return bool(ended.turns) and not any(record.request.tools_sent for record in ended.turns)


def answered(ended: Ended) -> bool:
    """True when the model said something: a dead or refusing endpoint has not."""
    return ended.end is not End.PROVIDER_ERROR and any(record.answer for record in ended.turns)


def tries_to_call(answer: Turn) -> bool:
    """True for calls, and for a text in which the engine found one that it could not or must not run."""
    return bool(answer.calls_found) or any(finding.code in ATTEMPTS for finding in answer.findings)


def has_call_tag(answer: Turn) -> bool:
    """True for a text with the tag around calls that many chat templates ask for."""
    return _TAG in answer.text


def counts(ended: Ended) -> JsonObject:
    """Numerators and denominators of the named rates, for one trial.

    Calls refused for their size are in neither `calls` nor `valid_calls`: nobody checked them against the schema. A
    call that had to be repaired first is not valid either: the model wrote it otherwise."""
    checked = [one.result for one in called(ended) if one.result.parse_status != "too_large"]
    answers = [(record, record.answer) for record in ended.turns if record.answer]
    calling = sum(tries_to_call(answer) for _, answer in answers)
    return {
        "calls": len(checked),
        "valid_calls": sum(is_valid(result) for result in checked) - sum(_mended_and_valid(r, a) for r, a in answers),
        "repaired_calls": sum(len(_mended(record, answer)) for record, answer in answers),
        "structured_answers": sum(_is_structured(answer) for _, answer in answers),
        "calling_answers": calling,
        "parse_error_turns": sum(_has_parse_error(record, answer) for record, answer in answers),
        "calling_turns": calling,
        "parse_error_ends": int(_ended_by_parse_error(ended)),
        "fallback_turns": sum(answer.mode == FALLBACK for _, answer in answers),
        "ignored_calls": sum(answer.ignored_calls for _, answer in answers),
    }


def is_valid(result: ToolResult) -> bool:
    """A call that could be read, keeps to its schema and names a tool that was offered."""
    return result.parse_status == "ok" and not result.schema_errors and "TOOL_NOT_ALLOWED" not in error_codes(result)


def _mended(record: TurnRecord, answer: Turn) -> list[ToolResult]:
    """The results of calls whose arguments were readable only after a repair."""
    places = {error.call for error in answer.parse_errors if error.mended}
    return [result for place, result in enumerate(record.results) if place in places]


def _mended_and_valid(record: TurnRecord, answer: Turn) -> int:
    return sum(is_valid(result) for result in _mended(record, answer))


def _ended_by_parse_error(ended: Ended) -> bool:
    """Nothing that we cannot read ends a run; a server that cannot read its own model's words may."""
    return ended.end is End.PROVIDER_ERROR and ended.error is not None and ended.error.code == MODEL_FORMAT


def _is_structured(answer: Turn) -> bool:
    read_from_tags = any(change.name == TAG_TRANSFORM for change in answer.changes)
    return bool(answer.calls_found) and answer.path == "tool_use" and not read_from_tags


def _has_parse_error(record: TurnRecord, answer: Turn) -> bool:
    if any(result.parse_status == "invalid_json" for result in record.results):
        return True
    return bool(answer.parse_errors) or any(finding.code == "parse_error" for finding in answer.findings)
