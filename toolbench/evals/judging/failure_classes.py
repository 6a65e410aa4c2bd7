"""Failure classes: one table says each in plain words, with its remedy and the case study's word for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.engine.events import EndReason, ExchangeError
from toolbench.engine.types import Finding
from toolbench.evals.data_files import freeze_row, read_table

UNNAMED_CLASS = "provider_failed"
ANY_STATUS_CATEGORY = "HTTP_4XX"


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One row. `category` is the case study's word, `later_category` its later version's where that differs. `set_up`:
    a person's key, account, address or machine was not ready, which shows nothing of how well the endpoint delivers. A
    row that is not `judged` comes from imported reports or from the lab. `ends`, `findings`, `envelope`, `exchange` and
    `statuses` say what is mapped onto the row: engine.End, findings about an answer, codes in an envelope's errors,
    codes of an exchange, HTTP statuses."""

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
    return tuple(FailureClass(**freeze_row(row)) for row in read_table("failure_classes"))


def lookup_class(code: str) -> FailureClass:
    """Raises KeyError for a code the table does not have."""
    return _index_by("code")[code]


def classify_end(end: EndReason) -> str:
    """The class of an end as such, "" for FINAL."""
    row = _index_by("ends").get(end.value)
    return row.code if row else ""


def classify_finding(finding: Finding) -> str:
    """The class of a finding about an answer, "" for one that does no harm."""
    row = _index_by("findings").get(finding.code)
    return row.code if row else ""


def classify_envelope(codes: Iterable[str]) -> str:
    """The class of a failed call, by the first error code the table knows; else that of tool failures."""
    known = _index_by("envelope")
    return next((known[code].code for code in codes if code in known), "tool_error")


def classify_exchange_error(error: ExchangeError) -> str:
    """The class of a failed exchange: by its code, else by its status."""
    if error.tool_support:
        return "tools_not_supported"
    row = _index_by("exchange").get(error.code) or _index_by("statuses").get(error.status)
    if row is None and error.status is not None and error.status >= 500:
        return "upstream_failed"
    return row.code if row else UNNAMED_CLASS


def categorise_status(status: int) -> str:
    """The case study's word for an HTTP status."""
    row = _index_by("statuses").get(status)
    if row is None and status >= 500:
        return "UPSTREAM_5XX"
    return row.category if row and row.category != ANY_STATUS_CATEGORY else f"HTTP_{status}"


@cache
def _index_by(column: str) -> Mapping[object, FailureClass]:
    found: dict[object, FailureClass] = {}
    for row in load_classes():
        value = getattr(row, column)
        for key in value if isinstance(value, tuple) else (value,):
            found.setdefault(key, row)
    return found
