"""Sort orders of the trial list, each as a list of columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import OrderBy
from django.db.models.functions import NullIf

from toolbench.lab.models import Trial

DEFAULT_SORT = "failed"
# Label by name of the sort order.
SORTS = {
    "failed": "failed first",
    "-failed": "failed last",
    "order": "in the order they ran",
    "slow": "slowest first",
    "fast": "fastest first",
    "tokens": "most tokens first",
    "-tokens": "fewest tokens first",
    "retries": "most retries first",
    "-retries": "fewest retries first",
    "turns": "most turns first",
    "-turns": "fewest turns first",
    "newest": "newest first",
    "oldest": "oldest first",
    "model": "by model",
    "-model": "by model, last first",
    "profile": "by profile",
    "-profile": "by profile, last first",
    "scenario": "by scenario",
    "-scenario": "by scenario, last first",
    "cause": "by cause",
    "-cause": "by cause, last first",
}
NULLABLE_COLUMNS = {"duration_ms", "started_at", "known_cause"}


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which trials are sorted; unknown values stand last, in a reversed order first."""

    name: str
    descending: bool = False
    unknown_first: bool = False

    @property
    def is_nullable(self) -> bool:
        """Return whether the value may be unknown."""
        return self.name in NULLABLE_COLUMNS

    @property
    def sql(self) -> str:
        """Return the term of an ORDER BY clause over rows that have the column."""
        nulls = "FIRST" if self.unknown_first else "LAST"
        return f'"{self.name}" {"DESC" if self.descending else "ASC"} NULLS {nulls}'

    @property
    def expression(self) -> OrderBy:
        """Return the term for `order_by` of a query.

        It sets the place of nulls only for nullable columns: PostgreSQL could not use the indexes of other columns with
        it.
        """
        nulls = {f"nulls_{'first' if self.unknown_first else 'last'}": True} if self.is_nullable else {}
        return F(self.name).desc(**nulls) if self.descending else F(self.name).asc(**nulls)

    def reverse(self) -> "SortColumn":
        """Return the column for the reversed order."""
        return SortColumn(self.name, descending=not self.descending, unknown_first=not self.unknown_first)


_RUN_ORDER = (SortColumn("run_id", descending=True), SortColumn("position"), SortColumn("id"))
_FAILED_ORDER = (SortColumn("rank"), *_RUN_ORDER)
# Column of text by name of the sort order.
TEXT_COLUMNS = {
    "model": "config__model_name",
    "profile": "config__profile",
    "scenario": "scenario",
    "cause": "known_cause",
}
# The columns of each of SORTS; the primary key makes every order unique.
SORT_COLUMNS: Mapping[str, tuple[SortColumn, ...]] = {
    "failed": _FAILED_ORDER,
    "-failed": (SortColumn("rank", descending=True), *_RUN_ORDER),
    "order": _RUN_ORDER,
    "slow": (SortColumn("duration_ms", descending=True), *_RUN_ORDER),
    "fast": (SortColumn("duration_ms"), *_RUN_ORDER),
    **{name: (SortColumn(name, descending=True), *_RUN_ORDER) for name in ("tokens", "retries", "turns")},
    **{f"-{name}": (SortColumn(name), *_RUN_ORDER) for name in ("tokens", "retries", "turns")},
    **{name: (SortColumn(column), *_FAILED_ORDER) for name, column in TEXT_COLUMNS.items()},
    **{f"-{name}": (SortColumn(column, descending=True), *_FAILED_ORDER) for name, column in TEXT_COLUMNS.items()},
    "newest": (SortColumn("started_at", descending=True), SortColumn("id", descending=True)),
    "oldest": (SortColumn("started_at"), SortColumn("id")),
}


def annotate_sort_columns(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Add the computed sort columns, except `rank`, which `filter_trials` adds."""
    return trials.annotate(tokens=F("input_tokens") + F("output_tokens"), known_cause=NullIf("cause", Value("")))


def build_condition_after(columns: Sequence[SortColumn], values: Sequence[Any]) -> Q:
    """Return the condition of the rows that come after the row with these values."""
    is_after, has_same_values = Q(pk__in=[]), Q()
    for column, value in zip(columns, values, strict=True):
        if value is None:
            if column.unknown_first:
                is_after |= has_same_values & Q((f"{column.name}__isnull", False))
            has_same_values &= Q((f"{column.name}__isnull", True))
            continue
        is_beyond = Q((f"{column.name}__{'lt' if column.descending else 'gt'}", value))
        if column.is_nullable and not column.unknown_first:
            is_beyond |= Q((f"{column.name}__isnull", True))
        is_after |= has_same_values & is_beyond
        has_same_values &= Q((column.name, value))
    first, first_value = columns[0], values[0]
    if first.is_nullable:
        return is_after
    # The first condition follows from `is_after`, but lets PostgreSQL use an index.
    return Q((f"{first.name}__{'lte' if first.descending else 'gte'}", first_value)) & is_after
