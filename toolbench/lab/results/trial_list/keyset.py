"""Keyset pagination of the list of trials: a cursor stays valid while trials are added."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from toolbench.lab.models import Trial
from toolbench.lab.query_params import MAX_ID
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials
from toolbench.lab.results.trial_list.sort_columns import (
    SORT_COLUMNS,
    TEXT_COLUMNS,
    SortColumn,
    annotate_sort_columns,
)

MAX_CURSOR_CHARACTERS = 4_000


class CursorError(Exception):
    """Error for a cursor that does not fit the order of the list."""


@dataclass(frozen=True, slots=True)
class TrialKeysetPage:
    """Page of trials.

    Attributes:
        cursor: cursor of the next page; None on the last page.
    """

    trials: tuple[Trial, ...]
    cursor: str | None


def get_trials_after(trial_filter: TrialFilter, cursor: str | None, limit: int) -> TrialKeysetPage:
    """Return the next trials that match the filter, in its order. Two queries.

    Args:
        trial_filter: filter and order.
        cursor: cursor of the page; None or "" for the first page.
        limit: maximum of trials.

    Raises:
        CursorError: the cursor does not fit the order.
    """
    columns = SORT_COLUMNS[trial_filter.sort]
    matching = annotate_sort_columns(filter_trials(trial_filter))
    if cursor:
        matching = matching.filter(_build_condition_after(columns, _decode_cursor(cursor, columns)))
    rows = list(_sort_trials(matching, columns).values_list("pk", *(column.name for column in columns))[: limit + 1])
    page_rows = rows[:limit]
    trials = Trial.objects.select_related("config", "run").defer(
        "final_text", "rendered_prompt", "causes", "wrong_paths", "run__request", "config__layers"
    )
    by_id = trials.in_bulk([row[0] for row in page_rows])
    next_cursor = _encode_cursor(page_rows[-1][1:]) if len(rows) > limit else None
    return TrialKeysetPage(tuple(by_id[row[0]] for row in page_rows if row[0] in by_id), next_cursor)


def _sort_trials(trials: QuerySet[Trial], columns: Sequence[SortColumn]) -> QuerySet[Trial]:
    return trials.order_by(
        *(
            F(column.name).desc(nulls_last=True) if column.descending else F(column.name).asc(nulls_last=True)
            for column in columns
        )
    )


def _build_condition_after(columns: Sequence[SortColumn], values: Sequence[Any]) -> Q:
    """Return the condition of the rows that come after the row with these values."""
    is_after, has_same_values = Q(pk__in=[]), Q()
    for column, value in zip(columns, values, strict=True):
        if value is None:
            has_same_values &= Q((f"{column.name}__isnull", True))
            continue
        is_beyond = Q((f"{column.name}__{'lt' if column.descending else 'gt'}", value))
        is_after |= has_same_values & (is_beyond | Q((f"{column.name}__isnull", True)))
        has_same_values &= Q((column.name, value))
    return is_after


def _encode_cursor(values: Sequence[Any]) -> str:
    json_values = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(json_values).encode()).decode().rstrip("=")


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
    if name in TEXT_COLUMNS.values():
        if not isinstance(value, str) or not _can_be_stored(value):
            raise wrong
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_ID <= value <= MAX_ID:
        raise wrong
    return value


def _can_be_stored(text: str) -> bool:
    """Return whether PostgreSQL can store the text: it has neither NUL nor lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
