"""The case study's rule for a pass and its words for failures."""

import re
from collections.abc import Sequence

from toolbench.engine.events import ANSWERED_ENDS, EndReason, ExchangeError, LoopResult
from toolbench.evals.judging import failure_classes
from toolbench.evals.record_counts import has_calls, is_without_tools
from toolbench.evals.types import Check

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

    That is `done`, optionally with `.` or `!`, optionally in quotes or backticks; case is ignored.
    """
    return re.fullmatch(r"done[.!]?", text.strip().strip("\"'`"), re.IGNORECASE) is not None


def build_done_check(ended: LoopResult) -> Check:
    """Return the check of the final sentence.

    It decides the pass by the case study's rule, never the task pass.
    """
    if is_done_sentence(ended.final_text):
        return Check("says Done.", True)
    return Check("says Done.", False, f"the final text is {ended.final_text[:80]!r}")


def is_case_study_pass(ended: LoopResult, checks: Sequence[Check]) -> bool:
    """Return whether the trial passes by the case study's rule: a final answer, and every assertion holds."""
    return ended.end in ANSWERED_ENDS and all(check.ok for check in checks)


def categorise_failure(ended: LoopResult) -> str:
    """Return the case study's word for a trial that failed by its rule, in its order of precedence."""
    if ended.error is not None and ended.end is EndReason.PROVIDER_ERROR:
        return _categorise_exchange_error(ended.error)
    if ended.end in _CATEGORY_BY_END:
        return _CATEGORY_BY_END[ended.end]
    return "ASSERTION_FAILED" if has_calls(ended) or is_without_tools(ended) else "NO_TOOL_CALLS"


def _categorise_exchange_error(error: ExchangeError) -> str:
    row = failure_classes.lookup_class(failure_classes.classify_exchange_error(error))
    if row.category in NETWORK_CATEGORIES:
        return row.category
    if NO_TOOL_ENDPOINT_TEXT in error.message:
        return "NO_TOOL_USE_ENDPOINT"
    if error.status is None:
        return "EXCEPTION"
    return failure_classes.categorise_status(error.status)
