"""Properties and counts of the loop result of one trial that do not depend on the scenario."""

from collections.abc import Iterator

from toolbench.engine.arguments import TOO_LARGE
from toolbench.engine.events import EndReason, LoopResult, ToolResult, TurnRecord
from toolbench.engine.light_dataclass import light
from toolbench.engine.transforms.responses import TEXT_CALL_TRANSFORMS
from toolbench.engine.types import CALL_ATTEMPT_CODES, JsonObject, Turn

TAG_TRANSFORM = "assistant_content_tool_call_tags_to_tool_calls"
TRUNCATED_FINISH_REASON = "length"
FALLBACK_MODE = "json_fallback"  # a value of Turn.mode
MODEL_FORMAT_ERROR_CODE = "model_format"  # of providers/data/outcomes.json
MESSAGE_PATH = "$.choices[0].message"
CONTENT_PATH = f"{MESSAGE_PATH}.content"
CALLS_PATH = f"{MESSAGE_PATH}.tool_calls"
FINISH_REASON_PATH = "$.choices[0].finish_reason"
_CALL_TAG = "<tool_call"


@light(frozen=True, slots=True)
class RecordedCall:
    """One tool result with its turn and the index of its call in that turn, both from 0."""

    turn: int
    index: int
    result: ToolResult

    @property
    def tool(self) -> str:
        """Return the name of the tool that ran, or else the name in the call."""
        return read_tool_name(self.result)

    @property
    def ok(self) -> bool:
        """Return whether the call succeeded."""
        return self.result.envelope.ok


def read_tool_name(result: ToolResult) -> str:
    """Return the name of the tool that ran, or else the name in the call."""
    return result.envelope.tool_name or result.call.name


def iter_calls(loop_result: LoopResult) -> Iterator[RecordedCall]:
    """Yield every call that has a result, in order."""
    for record in loop_result.turns:
        for index, result in enumerate(record.results):
            yield RecordedCall(record.turn, index, result)


def list_error_codes(result: ToolResult) -> tuple[str, ...]:
    """Return the error codes in the result's envelope, in order."""
    return tuple(str(error.get("code", "")) for error in result.envelope.errors)


def has_error(loop_result: LoopResult, code: str) -> bool:
    """Return whether a call failed with this error code."""
    return any(code in list_error_codes(call.result) for call in iter_calls(loop_result))


def count_calls(record: TurnRecord) -> int:
    """Return how many calls of the turn's answer the loop kept; 0 without an answer."""
    return len(record.answer.calls) if record.answer else 0


def has_calls(loop_result: LoopResult) -> bool:
    """Return whether any answer has a call that the loop kept."""
    return any(count_calls(record) for record in loop_result.turns)


def has_started_calls(loop_result: LoopResult) -> bool:
    """Return whether any answer has a call that the loop kept, or broke off with a call in it."""
    answers = (record.answer for record in loop_result.turns if record.answer)
    return any(answer.calls or (answer.is_truncated and answer.calls_found) for answer in answers)


def is_without_tools(loop_result: LoopResult) -> bool:
    """Return whether no request offered a tool, in the body or in the prompt; False without turns."""
    return bool(loop_result.turns) and not any(record.request.has_tools for record in loop_result.turns)


def has_answer(loop_result: LoopResult) -> bool:
    """Return whether the model answered; False if a provider error ended the loop or the last answer broke off."""
    answers = [record.answer for record in loop_result.turns if record.answer]
    return loop_result.end is not EndReason.PROVIDER_ERROR and bool(answers) and not answers[-1].is_truncated


def has_call_attempt(answer: Turn) -> bool:
    """Return whether the answer has a call, or text with a call that the engine could not or must not run."""
    return bool(answer.calls_found) or any(finding.code in CALL_ATTEMPT_CODES for finding in answer.findings)


def has_call_tag(answer: Turn) -> bool:
    """Return whether the answer's text contains `<tool_call`, a start marker of many chat templates."""
    return _CALL_TAG in answer.text


def count_trial(loop_result: LoopResult) -> JsonObject:
    """Return the numerators and denominators of rates for one trial, by the trial's column.

    Calls refused for their size are in none of `calls`, `valid_calls` and `repaired_calls`, because it is not known
    whether their arguments follow the schema. A call that needed a repair is in `calls` but not in `valid_calls`.
    `calling_answers` and `calling_turns` are the same count, the denominators of different rates.
    """
    checked = [call.result for call in iter_calls(loop_result) if call.result.parse_status != TOO_LARGE]
    answers = [(record, record.answer) for record in loop_result.turns if record.answer]
    calling_count = sum(has_call_attempt(answer) for _, answer in answers)
    return {
        "calls": len(checked),
        "valid_calls": sum(is_valid_call(result) for result in checked)
        - sum(_count_repaired_valid(record, answer) for record, answer in answers),
        "repaired_calls": sum(len(_list_repaired_results(record, answer)) for record, answer in answers),
        "structured_answers": sum(_is_structured(answer) for _, answer in answers),
        "calling_answers": calling_count,
        "parse_error_turns": sum(_has_parse_error(record, answer) for record, answer in answers),
        "calling_turns": calling_count,
        "parse_error_ends": int(_is_ended_by_parse_error(loop_result)),
        "fallback_turns": sum(answer.mode == FALLBACK_MODE for _, answer in answers),
        "ignored_calls": sum(answer.ignored_call_count for _, answer in answers),
    }


def is_valid_call(result: ToolResult) -> bool:
    """Return whether the arguments, repaired or not, follow the schema and the tool was offered."""
    return (
        result.parse_status == "ok" and not result.schema_errors and "TOOL_NOT_ALLOWED" not in list_error_codes(result)
    )


def _list_repaired_results(record: TurnRecord, answer: Turn) -> list[ToolResult]:
    """Return the results of calls whose arguments were readable only after a repair and not refused for their size."""
    repaired = {error.call for error in answer.parse_errors if error.is_repaired}
    return [
        result for index, result in enumerate(record.results) if index in repaired and result.parse_status != TOO_LARGE
    ]


def _count_repaired_valid(record: TurnRecord, answer: Turn) -> int:
    return sum(is_valid_call(result) for result in _list_repaired_results(record, answer))


def _is_ended_by_parse_error(loop_result: LoopResult) -> bool:
    """Return whether the run ended because the server could not read the output of its own model.

    Output that Toolbench itself cannot read never ends a run.
    """
    return (
        loop_result.end is EndReason.PROVIDER_ERROR
        and loop_result.error is not None
        and loop_result.error.code == MODEL_FORMAT_ERROR_CODE
    )


def _is_structured(answer: Turn) -> bool:
    """Return whether the answer's calls came in the response's field for calls, not in text or reasoning."""
    is_read_from_text = any(change.name in TEXT_CALL_TRANSFORMS for change in answer.changes)
    return bool(answer.calls_found) and answer.method_used == "tool_use" and not is_read_from_text


def _has_parse_error(record: TurnRecord, answer: Turn) -> bool:
    if any(result.parse_status == "invalid_json" for result in record.results):
        return True
    return bool(answer.parse_errors) or any(finding.code == "parse_error" for finding in answer.findings)
