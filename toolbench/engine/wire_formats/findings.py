"""Findings on deviations of an answer that do not prevent the use of its calls."""

from collections.abc import Iterator, Sequence

from toolbench.engine.types import Finding, JsonObject, get_called_function

# Finish reasons that an answer with calls may have. The first two announce a call, so there must be one.
_CALL_FINISH_REASONS = ("tool_calls", "function_call", "length")


def list_findings(calls: Sequence[JsonObject], text: str, finish_reason: str | None) -> Iterator[Finding]:
    """Yield the findings on an answer, by its calls, text and finish reason.

    Args:
        calls: calls in the field `tool_calls`, before missing ids and arguments are added; empty for none.
        text: text of the answer.
        finish_reason: finish reason in OpenAI's terms; None for none.
    """
    if not calls:
        if finish_reason in _CALL_FINISH_REASONS[:2]:
            message = f"The finish reason is {finish_reason}, but there is no call."
            yield Finding("finish_without_calls", message, "$.choices[0].finish_reason")
        return
    if finish_reason not in _CALL_FINISH_REASONS:
        message = (
            f"There are calls, but the finish reason is {finish_reason or 'missing'}; the calls count nevertheless."
        )
        yield Finding("finish_mismatch", message, "$.choices[0].finish_reason")
    if text.strip():
        yield Finding("content_beside_calls", "There is text beside the calls.", "$.choices[0].message.content")
    call_ids = [call.get("id") for call in calls]
    if any(not isinstance(call_id, str) or not call_id.strip() for call_id in call_ids):
        yield Finding("call_id_missing", "A call has no id; an id was added.", "$.choices[0].message.tool_calls")
    elif len(set(call_ids)) < len(call_ids):
        yield Finding(
            "call_id_repeated",
            "Calls have the same id; the later ones got other ids.",
            "$.choices[0].message.tool_calls",
        )
    complete_calls = calls[:-1] if finish_reason == "length" else calls
    if any(get_called_function(call).get("arguments") is None for call in complete_calls):
        message = "A call has no arguments; an empty object was added."
        yield Finding("arguments_missing", message, "$.choices[0].message.tool_calls")
    if any(call.get("type") != "function" for call in calls):
        message = "A call has another type than function, or none."
        yield Finding("call_type", message, "$.choices[0].message.tool_calls")
