"""Trials after a given row, in any sort order of the list: pages that stay right while trials are added."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import NullIf

from toolbench.lab.models import Trial
from toolbench.lab.query_params import MAX_ID
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials

MAX_CURSOR_CHARACTERS = 4_000


class CursorError(Exception):
    """A cursor that this list did not give."""


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which trials are sorted; unknown values stand last."""

    name: str
    descending: bool = False


_RUN_ORDER = (SortColumn("run_id", descending=True), SortColumn("position"), SortColumn("id"))
_FAILED_ORDER = (SortColumn("rank"), *_RUN_ORDER)
_TEXT_COLUMNS = {
    "model": "config__model_name",
    "profile": "config__profile",
    "scenario": "scenario",
    "cause": "known_cause",
}
# The orders of `filter.ORDERINGS`, each made unique by the primary key.
SORT_COLUMNS: Mapping[str, tuple[SortColumn, ...]] = {
    "failed": _FAILED_ORDER,
    "-failed": (SortColumn("rank", descending=True), *_RUN_ORDER),
    "order": _RUN_ORDER,
    "slow": (SortColumn("duration_ms", descending=True), *_RUN_ORDER),
    "fast": (SortColumn("duration_ms"), *_RUN_ORDER),
    **{name: (SortColumn(name, descending=True), *_RUN_ORDER) for name in ("tokens", "retries", "turns")},
    **{f"-{name}": (SortColumn(name), *_RUN_ORDER) for name in ("tokens", "retries", "turns")},
    **{name: (SortColumn(column), *_FAILED_ORDER) for name, column in _TEXT_COLUMNS.items()},
    **{f"-{name}": (SortColumn(column, descending=True), *_FAILED_ORDER) for name, column in _TEXT_COLUMNS.items()},
    "newest": (SortColumn("started_at", descending=True), SortColumn("id", descending=True)),
    "oldest": (SortColumn("started_at"), SortColumn("id")),
}


@dataclass(frozen=True, slots=True)
class TrialKeysetPage:
    """Trials of one page.

    Attributes:
        cursor: where the next page begins; None on the last page.
    """

    trials: tuple[Trial, ...]
    cursor: str | None


def get_trials_after(trial_filter: TrialFilter, cursor: str | None, limit: int) -> TrialKeysetPage:
    """Return the next trials that match the filter, in its sort order, with two queries.

    Raises:
        CursorError: the cursor is not one of this order.
    """
    columns = SORT_COLUMNS[trial_filter.sort]
    found = filter_trials(trial_filter).annotate(
        tokens=F("input_tokens") + F("output_tokens"), known_cause=NullIf("cause", Value(""))
    )
    if cursor:
        found = found.filter(_build_condition_after(columns, _decode_cursor(cursor, columns)))
    rows = list(_order(found, columns).values_list("pk", *(column.name for column in columns))[: limit + 1])
    shown = rows[:limit]
    trials = Trial.objects.select_related("config", "run").defer(
        "final_text", "rendered_prompt", "causes", "run__request", "config__layers"
    )
    by_id = trials.in_bulk([row[0] for row in shown])
    more = _encode_cursor(shown[-1][1:]) if len(rows) > limit else None
    return TrialKeysetPage(tuple(by_id[row[0]] for row in shown if row[0] in by_id), more)


def _order(trials: QuerySet[Trial], columns: Sequence[SortColumn]) -> QuerySet[Trial]:
    named = [(F(column.name), column.descending) for column in columns]
    return trials.order_by(*(name.desc(nulls_last=True) if down else name.asc(nulls_last=True) for name, down in named))


def _build_condition_after(columns: Sequence[SortColumn], values: Sequence[Any]) -> Q:
    """Return the condition of the rows that stand after the row with these values."""
    found, same = Q(pk__in=[]), Q()
    for column, value in zip(columns, values, strict=True):
        if value is None:
            same &= Q((f"{column.name}__isnull", True))
            continue
        beyond = Q((f"{column.name}__{'lt' if column.descending else 'gt'}", value))
        found |= same & (beyond | Q((f"{column.name}__isnull", True)))
        same &= Q((column.name, value))
    return found


def _encode_cursor(values: Sequence[Any]) -> str:
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def _decode_cursor(cursor: str, columns: Sequence[SortColumn]) -> list[Any]:
    try:
        padded = cursor[:MAX_CURSOR_CHARACTERS].encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, binascii.Error, RecursionError):
        values = None
    if not isinstance(values, list) or len(values) != len(columns):
        raise CursorError("Send the cursor that the last page gave, with the same sort order.")
    return [_parse_value(column.name, value) for column, value in zip(columns, values, strict=True)]


def _parse_value(name: str, value: Any) -> Any:
    wrong = CursorError("Send the cursor that the last page gave, with the same sort order.")
    if value is None and name in ("duration_ms", "started_at", "known_cause"):
        return None
    if name == "started_at":
        try:
            started_at = datetime.fromisoformat(value)
            if started_at.tzinfo is None:
                raise wrong
            return started_at.astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
    if name in _TEXT_COLUMNS.values():
        if not isinstance(value, str) or not _can_be_stored(value):
            raise wrong
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_ID <= value <= MAX_ID:
        raise wrong
    return value


def _can_be_stored(text: str) -> bool:
    """Return whether a column can hold the text: without NUL and lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
