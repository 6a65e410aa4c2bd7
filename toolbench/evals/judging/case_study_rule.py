"""The case study's rule for a pass and its words for failures."""

import re
from collections.abc import Sequence

from toolbench.engine.events import ANSWERED_ENDS, EndReason, ExchangeError, LoopResult
from toolbench.evals.judging import failure_classes
from toolbench.evals.record_counts import has_calls, is_without_tools
from toolbench.evals.types import Check

DONE_CHECK = "says Done."
NETWORK_CATEGORIES = ("CONNECTION_ERROR", "TIMEOUT_ERROR", "DECODE_ERROR")
NO_TOOL_ENDPOINT_TEXT = "No endpoints found that support tool use"
_CATEGORY_BY_END = {
    EndReason.NO_TOOL_CALLS: "NO_TOOL_CALLS",
    EndReason.TOOL_ERROR: "TOOL_ERROR",
    EndReason.DEADLINE_EXCEEDED: "TIMEOUT",
    EndReason.MAX_TURNS_EXCEEDED: "EXCEPTION",
}


def is_done_sentence(text: str) -> bool:
    """Return whether the text is the case study's final sentence.

    The sentence is `done`, optionally followed by `.` or `!`. Case is ignored, and so are white space around the text
    and quotes or backticks around the sentence.
    """
    return re.fullmatch(r"done[.!]?", text.strip().strip("\"'`"), re.IGNORECASE) is not None


def build_done_check(loop_result: LoopResult) -> Check:
    """Return the check that the final text is the case study's final sentence.

    The case study's rule requires the sentence. By Toolbench's rules a trial can pass without it, except in the control
    scenario whose task is to say it.
    """
    if is_done_sentence(loop_result.final_text):
        return Check(DONE_CHECK, True)
    return Check(DONE_CHECK, False, f"the final text is {loop_result.final_text[:80]!r}")


def is_case_study_pass(loop_result: LoopResult, checks: Sequence[Check]) -> bool:
    """Return whether a trial passes by the case study's rule.

    A trial passes if it ends with an answer, complete or truncated at the token limit, and every check holds. An answer
    that broke off does not count, but is not recognised here: the caller has to check it.

    Args:
        loop_result: The finished run.
        checks: The case study's assertions.
    """
    return loop_result.end in ANSWERED_ENDS and all(check.ok for check in checks)


def categorise_failure(loop_result: LoopResult) -> str:
    """Return the case study's word for a failed trial.

    If several words apply, the case study's order of precedence decides.
    """
    if loop_result.error is not None and loop_result.end is EndReason.PROVIDER_ERROR:
        return _categorise_exchange_error(loop_result.error)
    if loop_result.end in _CATEGORY_BY_END:
        return _CATEGORY_BY_END[loop_result.end]
    return "ASSERTION_FAILED" if has_calls(loop_result) or is_without_tools(loop_result) else "NO_TOOL_CALLS"


def _categorise_exchange_error(error: ExchangeError) -> str:
    row = failure_classes.lookup_class(failure_classes.classify_exchange_error(error))
    if row.category in NETWORK_CATEGORIES:
        return row.category
    if NO_TOOL_ENDPOINT_TEXT in error.message:
        return "NO_TOOL_USE_ENDPOINT"
    if error.status is None:
        return "EXCEPTION"
    return failure_classes.categorise_status(error.status)
