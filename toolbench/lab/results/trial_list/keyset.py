"""Keyset pagination of the list of trials: a cursor stays valid while trials are added."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolbench.lab.models import Trial
from toolbench.lab.query_params import MAX_ID
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials, has_named_runs
from toolbench.lab.results.trial_list.index import MAX_COUNTED_TRIALS
from toolbench.lab.results.trial_list.newest_trials import read_first_page
from toolbench.lab.results.trial_list.sort_columns import (
    NULLABLE_COLUMNS,
    SORT_COLUMNS,
    TEXT_COLUMNS,
    SortColumn,
    annotate_sort_columns,
    build_condition_after,
)

MAX_CURSOR_CHARACTERS = 4_000


class CursorError(Exception):
    """Error for a cursor that cannot be read or does not fit the sort order; the message is for users."""

    def __init__(self) -> None:
        super().__init__("Send the cursor of the previous page, with the same sort order.")


@dataclass(frozen=True, slots=True)
class TrialKeysetPage:
    """Page of trials.

    Attributes:
        cursor: cursor of the next page; None on the last page.
        is_limited: whether the pages list only the newest MAX_COUNTED_TRIALS, because more trials match.
    """

    trials: tuple[Trial, ...]
    cursor: str | None
    is_limited: bool


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Place in a list.

    Attributes:
        values: values of the sort columns of the last trial of the page before.
        oldest: lowest primary key that the pages list; 0 without such a limit.
    """

    values: tuple[Any, ...]
    oldest: int

    def encode(self) -> str:
        """Return the text of the cursor."""
        values = [value.isoformat() if isinstance(value, datetime) else value for value in (*self.values, self.oldest)]
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def get_trials_after(trial_filter: TrialFilter, cursor: str | None, limit: int) -> TrialKeysetPage:
    """Return the next trials that match the filter, in its order.

    The function sends at most two queries, and one more for an `alike` filter. All matching trials are listed if the
    filter names runs, cells or configurations, or if its order is "order", for which there is an index. Otherwise, only
    the newest MAX_COUNTED_TRIALS are listed.

    Args:
        trial_filter: filter and order.
        cursor: cursor of the page; None or "" for the first page.
        limit: maximum number of trials.

    Raises:
        CursorError: the cursor cannot be read or does not fit the order.
    """
    columns = SORT_COLUMNS[trial_filter.sort]
    place = _decode_cursor(cursor, columns) if cursor else None
    if place is None and not _lists_all(trial_filter):
        oldest, rows = read_first_page(trial_filter, size=limit + 1, max_listed=MAX_COUNTED_TRIALS)
    else:
        oldest, rows = place.oldest if place else 0, _read_rows(trial_filter, columns, place, limit + 1)
    page_rows = rows[:limit]
    trials = Trial.objects.select_related("config", "run").defer(
        "final_text", "rendered_prompt", "causes", "wrong_paths", "run__request", "config__layers"
    )
    by_id = trials.in_bulk([row[0] for row in page_rows])
    next_cursor = _Cursor(page_rows[-1][1:], oldest).encode() if len(rows) > limit else None
    page_trials = tuple(by_id[row[0]] for row in page_rows if row[0] in by_id)
    return TrialKeysetPage(page_trials, next_cursor, is_limited=bool(oldest))


def _lists_all(trial_filter: TrialFilter) -> bool:
    """Return whether the pages list all matching trials."""
    return has_named_runs(trial_filter) or trial_filter.sort == "order"


def _read_rows(
    trial_filter: TrialFilter, columns: Sequence[SortColumn], place: _Cursor | None, size: int
) -> list[tuple[Any, ...]]:
    """Return primary key and sort columns of the trials after `place`, or of the first ones if it is None."""
    matching = annotate_sort_columns(filter_trials(trial_filter))
    if place:
        listed = matching.filter(pk__gte=place.oldest) if place.oldest else matching
        matching = listed.filter(build_condition_after(columns, place.values))
    ordered = matching.order_by(*(column.expression for column in columns))
    return list(ordered.values_list("pk", *(column.name for column in columns))[:size])


def _decode_cursor(cursor: str, columns: Sequence[SortColumn]) -> _Cursor:
    """Return the place in the list that the text of a cursor names.

    Raises:
        CursorError: the text is no cursor for these sort columns.
    """
    try:
        padded = cursor[:MAX_CURSOR_CHARACTERS].encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, binascii.Error, RecursionError):
        values = None
    if not isinstance(values, list) or len(values) != len(columns) + 1 or not _is_id(values[-1]):
        raise CursorError
    parsed = tuple(_parse_value(column.name, value) for column, value in zip(columns, values, strict=False))
    return _Cursor(parsed, values[-1])


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID


def _parse_value(name: str, value: Any) -> Any:
    """Return the value of a sort column from its JSON value in a cursor.

    Raises:
        CursorError: the column cannot have this value.
    """
    if value is None and name in NULLABLE_COLUMNS:
        return None
    if name == "started_at":
        try:
            started_at = datetime.fromisoformat(value)
            if started_at.tzinfo is None:
                raise CursorError
            return started_at.astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            raise CursorError from None
    if name in TEXT_COLUMNS.values():
        if not isinstance(value, str) or not _can_be_stored(value):
            raise CursorError
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_ID <= value <= MAX_ID:
        raise CursorError
    return value


def _can_be_stored(text: str) -> bool:
    """Return whether PostgreSQL can store the text: it has neither NUL nor lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
