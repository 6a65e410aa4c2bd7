"""The table of failure classes: for each a plain sentence, a suggested fix and the case study's word for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.engine.events import EndReason, ExchangeError
from toolbench.engine.types import Finding
from toolbench.evals.data_files import freeze_row, read_table

UNNAMED_CLASS = "provider_failed"  # of a failed exchange that no row of the table names
# The category of a row for several statuses. categorise_status gives each of them its own word, such as HTTP_422.
ANY_STATUS_CATEGORY = "HTTP_4XX"


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One row of the table.

    Attributes:
        remedy: The suggested fix.
        category: The case study's word for the class.
        later_category: The word of the case study's later version; "" if that is the same.
        infrastructure: Whether the class is an infrastructure error.
        set_up: Whether the error says nothing about the endpoint: a key, account, model name, address or machine was
            not ready, this version cannot run the trial, or Toolbench itself failed.
        judged: Whether judging gives the class. Any other class is set by the lab or comes from an imported report.
        ends: The values of the end reasons that have this class.
        findings: The codes of findings about an answer that have this class.
        envelope: The error codes of failed calls that have this class.
        exchange: The error codes of failed exchanges that have this class.
        statuses: The HTTP statuses of failed exchanges that have this class.
    """

    code: str
    sentence: str
    remedy: str
    category: str
    later_category: str = ""
    infrastructure: bool = False
    set_up: bool = False
    judged: bool = True
    ends: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    envelope: tuple[str, ...] = ()
    exchange: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


@cache
def load_classes() -> tuple[FailureClass, ...]:
    """Return every row, in the table's order."""
    return tuple(FailureClass(**freeze_row(row)) for row in read_table("failure_classes"))


def lookup_class(code: str) -> FailureClass:
    """Return the row of a code.

    Raises:
        KeyError: The table does not have the code.
    """
    return _index_by("code")[code]


def classify_end(end: EndReason) -> str:
    """Return the class of an end reason; "" for one without a class."""
    row = _index_by("ends").get(end.value)
    return row.code if row else ""


def classify_finding(finding: Finding) -> str:
    """Return the class of a finding about an answer; "" for one without a class."""
    row = _index_by("findings").get(finding.code)
    return row.code if row else ""


def classify_error_codes(codes: Iterable[str]) -> str:
    """Return the class of a failed call, `tool_error` if the table has none of its error codes.

    Args:
        codes: The error codes of the call; the first one that is in the table decides.
    """
    row_by_code = _index_by("envelope")
    return next((row_by_code[code].code for code in codes if code in row_by_code), "tool_error")


def classify_exchange_error(error: ExchangeError) -> str:
    """Return the class of a failed exchange.

    The class is `tools_not_supported` if the error says that tools are not supported, else that of the error code, else
    that of the HTTP status, else `upstream_failed` from status 500, else UNNAMED_CLASS.
    """
    if error.tool_support:
        return "tools_not_supported"
    row = _index_by("exchange").get(error.code) or _index_by("statuses").get(error.status)
    if row is None and error.status is not None and error.status >= 500:
        return "upstream_failed"
    return row.code if row else UNNAMED_CLASS


def categorise_status(status: int) -> str:
    """Return the case study's word for an HTTP status, such as `HTTP_422`."""
    row = _index_by("statuses").get(status)
    if row is None and status >= 500:
        return "UPSTREAM_5XX"
    return row.category if row and row.category != ANY_STATUS_CATEGORY else f"HTTP_{status}"


@cache
def _index_by(column: str) -> Mapping[object, FailureClass]:
    """Return the first row with each value of a column; in columns of tuples, each item counts as a value."""
    rows: dict[object, FailureClass] = {}
    for row in load_classes():
        value = getattr(row, column)
        for key in value if isinstance(value, tuple) else (value,):
            rows.setdefault(key, row)
    return rows
