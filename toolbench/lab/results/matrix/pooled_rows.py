"""Rows of the matrix before a metric is chosen, kept in memory for all metrics, views and orders."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from toolbench.lab.metrics.pools import SumRow, contains_name, merge_rows
from toolbench.lab.metrics.scenario_groups import DEFAULT_GROUP, build_group_sort_key
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.rows import MODEL_KEY, ROW_KEY, MatrixRow, build_row
from toolbench.lab.results.table_layout import USUAL_LAYOUT

SCENARIO_KEY = ("scenario_group", "control", "scenario", "scenario_version")


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Sums and rows that the matrices of all metrics, targets, views and orders share.

    Attributes:
        sums: the sums by row, scenario and version.
        group: the group of scenarios that is shown.
        is_default_group: whether `group` is the default one, so that links omit it.
        rows: the rows with the value of the default metric.
    """

    sums: list[SumRow]
    scenario_groups: tuple[str, ...]
    group: str
    is_default_group: bool
    rows: tuple[MatrixRow, ...]


_cached_rows: VersionCache[PooledRows] = VersionCache(max_entries=8)


def pool_rows(
    query: MatrixQuery,
    version: UUID | None,
    read_sums: Callable[[], list[SumRow]],
    published: Mapping[tuple[str, str], str] | None = None,
) -> PooledRows:
    """Return the rows of a query for any metric, from memory if another metric, view or order was shown before.

    Args:
        query: scope and filter.
        version: version of the sums; None if they must not be cached.
        read_sums: returns the sums; called if the rows are not cached.
        published: `MatrixRow.published` by model and profile; None for rows without it.
    """
    default = MatrixQuery()
    shared_query = replace(
        query, metric=default.metric, target=default.target, cell="", view="", sort="", layout=USUAL_LAYOUT, ignored=()
    )
    key = (shared_query, None if published is None else tuple(sorted(published.items())))
    return _cached_rows.get(version, key, lambda: _build_pooled_rows(shared_query, read_sums(), published or {}))


def _build_pooled_rows(query: MatrixQuery, sums: list[SumRow], published: Mapping[tuple[str, str], str]) -> PooledRows:
    matching_rows = [sum_row for sum_row in sums if contains_name(sum_row, query.q)]
    merged_rows = merge_rows(matching_rows, (*ROW_KEY, *list_extra_keys(query), *SCENARIO_KEY))
    scenario_groups = {sum_row["scenario_group"] for sum_row in merged_rows} - {"control"}
    default_group = _choose_default_group(scenario_groups)
    group = query.group if query.group in scenario_groups else default_group
    sums_by_row = sorted(group_by_row(merged_rows), key=_build_model_key)
    built_rows = (build_row(sum_rows, query, group, published) for sum_rows in sums_by_row)
    return PooledRows(
        sums=merged_rows,
        scenario_groups=tuple(sorted(scenario_groups, key=build_group_sort_key)),
        group=group,
        is_default_group=group == default_group,
        rows=tuple(row for row in built_rows if row is not None),
    )


def list_extra_keys(query: MatrixQuery) -> tuple[str, ...]:
    """Return the columns by which cells are grouped besides the usual ones."""
    return ("prompt_version",) if query.prompt == SPLIT_BY_PROMPT else ()


def group_by_row(sum_rows: list[SumRow]) -> list[list[SumRow]]:
    """Group sums by the row of the matrix that they belong to; each list has the sums of one row."""
    rows_by_key: dict[tuple[Any, ...], list[SumRow]] = {}
    for sum_row in sum_rows:
        key = (*(sum_row[name] for name in ROW_KEY), sum_row.get("prompt_version"))
        rows_by_key.setdefault(key, []).append(sum_row)
    return list(rows_by_key.values())


def _build_model_key(sum_rows: list[SumRow]) -> tuple[Any, ...]:
    """Return the sort key of the sums of one row: by model, the profile `default` first."""
    first = sum_rows[0]
    return *(first[name] for name in MODEL_KEY), first["profile"] != "default"


def _choose_default_group(groups: set[str]) -> str:
    return DEFAULT_GROUP if DEFAULT_GROUP in groups or not groups else min(groups)
