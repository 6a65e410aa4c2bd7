"""The case study's own rule and its own words for what failed."""

import re
from collections.abc import Sequence

from toolbench.engine.events import ANSWERS, End, Ended, ExchangeError
from toolbench.evals.judging import failure_classes
from toolbench.evals.record_counts import any_calls, tools_off
from toolbench.evals.types import Check

NETWORK = ("CONNECTION_ERROR", "TIMEOUT_ERROR", "DECODE_ERROR")
NO_TOOL_ENDPOINT = "No endpoints found that support tool use"
_ENDS = {
    End.NO_TOOL_CALLS: "NO_TOOL_CALLS",
    End.TOOL_ERROR: "TOOL_ERROR",
    End.DEADLINE_EXCEEDED: "TIMEOUT",
    End.MAX_TURNS_EXCEEDED: "EXCEPTION",
}


def says_done(text: str) -> bool:
    """The final sentence of the case study: `done`, perhaps with `.` or `!`, perhaps in quotes or backticks."""
    return re.fullmatch(r"done[.!]?", text.strip().strip("\"'`"), re.IGNORECASE) is not None


def done_check(ended: Ended) -> Check:
    """The final word. It decides the parity pass, never the task pass."""
    if says_done(ended.final_text):
        return Check("says Done.", True)
    return Check("says Done.", False, f"the final text is {ended.final_text[:80]!r}")


def passes(ended: Ended, checks: Sequence[Check]) -> bool:
    """The case study's pass: a final answer, and every assertion holds."""
    return ended.end in ANSWERS and all(check.ok for check in checks)


def category(ended: Ended) -> str:
    """The case study's word for a trial that failed by its rule, in its order of precedence."""
    if ended.error is not None and ended.end is End.PROVIDER_ERROR:
        return _of_exchange(ended.error)
    if ended.end in _ENDS:
        return _ENDS[ended.end]
    return "ASSERTION_FAILED" if any_calls(ended) or tools_off(ended) else "NO_TOOL_CALLS"


def _of_exchange(error: ExchangeError) -> str:
    row = failure_classes.find(failure_classes.of_exchange(error))
    if row.category in NETWORK:
        return row.category
    if NO_TOOL_ENDPOINT in error.message:
        return "NO_TOOL_USE_ENDPOINT"
    if error.status is None:
        return "EXCEPTION"
    return failure_classes.of_status(error.status)
