"""Sums over the cells of many runs, read from stored pools if the runs have ended.

A pool (CellPool) is a row of sums over the cells of ended runs with the same configuration and scenario version. Runs
of the playground are in no pool and in no sum over all runs. Runs that are not pooled are summed from their cells on
every call. A refresh computes a pool from all of its cells, so no stored sum is ever incremented. If a pooled run has
changed since the last refresh, all runs are summed from their cells, so that pages are exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db import connection, transaction
from django.db.models import BooleanField, Case, DecimalField, Exists, F, Max, Min, OuterRef, Q, QuerySet, Value, When

from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cause_pools import build_kind_conditions, write_cause_pools
from toolbench.lab.metrics.pool_version import ENDED, find_pool_version, read_usable_version
from toolbench.lab.metrics.repeated_instances import RepeatedInstances, RepeatedSums, sum_repeated_instances
from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS, ResultFilter
from toolbench.lab.metrics.tally import build_aggregates
from toolbench.lab.metrics.times import build_time_aggregates
from toolbench.lab.models import Cell, CellPool, PoolState, Run, RunConfig, Trial

SumRow = dict[str, Any]  # sums over cells by column: a row of CellPool, or of a query over cells with the same columns

CONFIRMATION_PURPOSE = "confirm"  # Run.purpose of confirmation runs, which no decision counts
MORE_TRIALS_PURPOSE = "decide"  # Run.purpose of a run with trials that a decision needs; the decision counts them
CONFIG_FIELDS = (
    "provider_name", "provider_kind", "model_name", "profile", "strategy", "method", "examples", "tool_use_mode",
    "stream", "policy_hash",
)  # fmt: skip
CELL_FIELDS = ("instance_kind", "scenario_group", "control", "scenario", "scenario_version")
RUN_FIELDS = ("simulated", "imported", "confirming")
SUM_ROW_KEY = (*CONFIG_FIELDS, *CELL_FIELDS)
MAX_RUNS_PER_REFRESH = 500
_ID_ARRAYS = ("config_ids", "cell_ids", "run_ids")
_TEXT_ARRAYS = ("engines", "purposes", "canonicals", "prompts")
_ARRAYS = (*_ID_ARRAYS, *_TEXT_ARRAYS)
_TIME_COLUMNS = ("all_durations", "all_first_tokens")
_INSTANCE_KEY = ("simulated", "imported", *CONFIG_FIELDS, "instance_kind", "scenario_version")
_DECIMAL_SUMS = tuple(column.name for column in CellPool._meta.concrete_fields if isinstance(column, DecimalField))
_FLAGS = (*RUN_FIELDS, "mixed_upstreams")
_NULLABLE_SUMS = {"sum_error", "sum_cost"}
_REFRESH_LOCK_ID = 7_310_421  # key of the advisory lock that allows one refresh at a time
_IS_CONFIRMING = Case(
    When(run__purpose=CONFIRMATION_PURPOSE, then=Value(True)), default=Value(False), output_field=BooleanField()
)


def sum_cells(cells: QuerySet[Cell], *extra_keys: str) -> list[SumRow]:
    """Return the sums over cells: a row for each combination of RUN_FIELDS, SUM_ROW_KEY and `extra_keys`.

    Args:
        cells: the cells to add up.
        extra_keys: further columns of cells to group by.

    Returns:
        The rows, ordered by these columns.
    """
    key = (*RUN_FIELDS, *SUM_ROW_KEY, *extra_keys)
    config_columns = {name: F(f"config__{name}") for name in CONFIG_FIELDS}
    run_columns = {"simulated": F("run__simulated"), "imported": F("run__imported"), "confirming": _IS_CONFIRMING}
    grouped = cells.annotate(**config_columns, **run_columns).order_by().values(*key)
    return list(grouped.annotate(**_build_annotations()).order_by(*key))


@dataclass(frozen=True, slots=True)
class RunSums:
    """Sums over the cells of many runs.

    Attributes:
        rows: in no order; several rows may have the same SUM_ROW_KEY.
        version: while it is the same, the same arguments of `sum_all_runs` give the same rows, so results can be cached
            by it; None if the sums may change at any time.
    """

    rows: list[SumRow]
    version: UUID | None = None


def sum_all_runs(chosen: ResultFilter, *, simulated: bool, imported: bool) -> RunSums:
    """Return the sums over all runs that are neither deleted nor of the playground.

    Args:
        chosen: which configurations, scenarios and times to include.
        simulated: True for runs of simulated models, False for the other runs; ignored for imported runs.
        imported: True for imported runs, simulated or not; False for the other runs.
    """
    scope = build_kind_conditions(simulated=simulated, imported=imported)
    version = None if chosen.has_time else read_usable_version()
    if version is not None:
        pooled_rows = [row for row in _load_pools(version, scope) if chosen.matches(row)]
        if find_pool_version(Run.COUNTED & Q(**scope)) == version:
            return RunSums(pooled_rows, version)
        other_rows = _sum_scope(chosen, scope, without_pooled=True)
        if read_usable_version() == version:  # else the pools have changed between the queries
            return RunSums([*pooled_rows, *other_rows], None if other_rows else version)
    return RunSums(_sum_scope(chosen, scope))


def list_choices(*, simulated: bool, imported: bool, runs: Sequence[int] = ()) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the models, profiles, strategies and scenarios in runs, with one query.

    Args:
        simulated: True for runs of simulated models, False for the other runs; ignored for imported runs.
        imported: True for imported runs, simulated or not; False for the other runs.
        runs: ids of the runs to read, for which `simulated` and `imported` are ignored; () for all runs, except those
            of the playground.

    Returns:
        The sorted names by URL parameter, a key of CHOICE_COLUMNS.
    """
    columns = tuple(CHOICE_COLUMNS.values())
    cells = Cell.objects.filter(run__deleted_at=None).order_by()
    cell_columns = [column if column == "scenario" else f"config__{column}" for column in columns]
    if runs:
        # The condition on config__run changes no result. It keeps PostgreSQL from reading all configurations.
        rows = set(cells.filter(run__in=runs, config__run__in=runs).values_list(*cell_columns).distinct())
    else:
        scope = build_kind_conditions(simulated=simulated, imported=imported)
        unpooled = cells.filter(run__in=Run.objects.filter(Run.COUNTED, pooled=False, **scope))
        pools = CellPool.objects.filter(**scope).order_by().values_list(*columns)
        rows = set(pools.union(unpooled.values_list(*cell_columns)))
    return {name: tuple(sorted({row[index] for row in rows})) for index, name in enumerate(CHOICE_COLUMNS)}


def contains_name(row: Mapping[str, Any], name_part: str) -> bool:
    """Return whether the model name or the provider name of a row contains `name_part`, ignoring case."""
    return any(name_part.lower() in row[column].lower() for column in ("model_name", "provider_name"))


def render_config_label(row: Mapping[str, Any]) -> str:
    """Return the name of a configuration, from a row with the columns CONFIG_FIELDS."""
    values = [row[name] for name in ("provider_name", "model_name", "profile", "strategy", "method", "examples")]
    return " · ".join(filter(None, [*values, "streamed" if row["stream"] else ""]))


def merge_rows(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> list[SumRow]:
    """Add up the rows with an equal key.

    Returns:
        A sum for each key, ordered by the key, with a further column `hashes`: the policy hashes of the added rows.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    return [_merge_group(groups[values]) for values in sorted(groups)]


def refresh_pools(max_runs: int = MAX_RUNS_PER_REFRESH) -> int:
    """Add up to `max_runs` runs that have ended to the pools, and update the pools of changed runs.

    The pools of every model in these runs are computed again, from all pooled runs. A RunChange that is committed
    during the refresh is kept for the next one.

    Returns:
        How many runs had changed or were added to the pools; 0 if another process is refreshing the pools. Runs of the
        playground are not counted when they are marked as pooled.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_REFRESH_LOCK_ID])
        if not cursor.fetchone()[0]:
            return 0
        run_ids = _choose_runs(_delete_run_changes(cursor), max_runs)
        if run_ids:
            _write_pools(run_ids)
    return len(run_ids)


def _build_annotations() -> dict[str, Any]:
    return {
        **build_aggregates(),
        **build_time_aggregates(),
        "config_ids": ArrayAgg("config_id", distinct=True),
        "cell_ids": ArrayAgg("pk"),
        "run_ids": ArrayAgg("run_id", distinct=True),
        "engines": ArrayAgg("run__engine_version", distinct=True),
        "purposes": ArrayAgg("run__purpose", distinct=True),
        "canonicals": ArrayAgg("config__canonical", distinct=True),
        "prompts": ArrayAgg("prompt_version", distinct=True),
        "mixed_upstreams": BoolOr("config__mixed_upstreams"),
        "first": Min("run__created_at"),
        "last": Max("run__created_at"),
    }


def _sum_scope(chosen: ResultFilter, scope: Mapping[str, bool], *, without_pooled: bool = False) -> list[SumRow]:
    """Return sums over the cells of runs that are neither deleted nor of the playground.

    Args:
        chosen: which configurations, scenarios and times to include.
        scope: result of `build_kind_conditions`.
        without_pooled: whether to exclude pooled runs.
    """
    runs = Run.objects.filter(Run.COUNTED, deleted_at=None, **scope)
    in_scope = runs.filter(pooled=False) if without_pooled else runs
    return sum_cells(Cell.objects.filter(chosen.condition, run__in=in_scope))


@dataclass(slots=True)
class _PoolCache:
    """The pools of one version in memory. A new version gets a new object, so threads need no lock.

    Attributes:
        version: None while nothing is cached.
        rows: rows of CellPool by scope; a key is `tuple(build_kind_conditions(…).items())`.
    """

    version: UUID | None = None
    rows: dict[tuple[tuple[str, bool], ...], list[SumRow]] = field(default_factory=dict)


_cache = _PoolCache()


def _load_pools(version: UUID, scope: Mapping[str, bool]) -> list[SumRow]:
    """Return the rows of the pools in a scope. They are shared between calls and must not be modified."""
    global _cache
    cache = _cache
    if cache.version != version:
        cache = _cache = _PoolCache(version)
    key = tuple(scope.items())
    if key not in cache.rows:
        cache.rows[key] = [_read_pool(dict(row)) for row in CellPool.objects.filter(**scope).values()]
    return cache.rows[key]


def _read_pool(row: Mapping[str, Any]) -> SumRow:
    """Return the row in the form of `sum_cells`, with int instead of Decimal; it also has `repeated`."""
    return {name: value for name, value in row.items() if name != "id"} | {
        name: int(row[name]) for name in _DECIMAL_SUMS
    }


def _merge_group(rows: Sequence[Mapping[str, Any]]) -> SumRow:
    """Add up at least one row; a column that this docstring does not name keeps the value of the first row.

    Columns `sum_…` are added, but `sum_error` is the smallest known value, and unknown costs are left out of
    `sum_cost`. Arrays are united, times are concatenated, and a flag is set if any row sets it. `first` and `last` span
    all rows. `repeated` is None for several rows, and `hashes` has the policy hashes of all rows.
    """
    hashes = tuple(sorted({row["policy_hash"] for row in rows}))
    if len(rows) == 1:
        return {**rows[0], "hashes": hashes}
    merged = {**rows[0], "repeated": None}  # unknown, since the same instance may be in several rows
    for name in rows[0].keys() - {"repeated"}:  # only rows of pools have this column
        values = [row[name] for row in rows]
        if name in _ARRAYS:
            merged[name] = sorted({item for items in values for item in items})
        elif name in _TIME_COLUMNS:
            merged[name] = b"".join(bytes(times or b"") for times in values)
        elif name in _NULLABLE_SUMS:
            known_values = [value for value in values if value is not None]
            combine = min if name == "sum_error" else sum
            merged[name] = combine(known_values) if known_values else None
        elif name.startswith("sum_"):
            merged[name] = sum(values)
        elif name in _FLAGS:
            merged[name] = any(values)
    return merged | {
        "hashes": hashes,
        "first": min(row["first"] for row in rows),
        "last": max(row["last"] for row in rows),
    }


def _delete_run_changes(cursor: Any) -> list[int]:
    """Delete the rows of RunChange and return the ids of their runs, in order and without repeats."""
    cursor.execute("DELETE FROM lab_runchange RETURNING run_id")
    return sorted({row[0] for row in cursor.fetchall()})


def _choose_runs(recomputed_ids: Sequence[int], max_runs: int) -> list[int]:
    """Update `Run.pooled` of all runs; return the ids of the runs whose pools have to be written.

    Args:
        recomputed_ids: ids of the runs whose cells were recomputed since the last refresh.
        max_runs: how many runs may be added to the pools.
    """
    has_ended = ENDED & Q(deleted_at=None)
    outdated = Run.objects.filter(Q(pooled=True) & (~has_ended | Q(pk__in=recomputed_ids)))
    changed_ids = list(outdated.values_list("pk", flat=True))
    Run.objects.filter(Q(pk__in=changed_ids) & ~has_ended).update(pooled=False)
    stale_cells = Exists(Cell.objects.filter(run=OuterRef("pk"), stale=True))
    addable = Run.objects.filter(has_ended, pooled=False).exclude(stale_cells).order_by("pk")
    added = dict(addable.values_list("pk", "purpose")[:max_runs])
    Run.objects.filter(pk__in=added).update(pooled=True)
    return [*changed_ids, *(pk for pk, purpose in added.items() if purpose != Run.PLAYGROUND)]


def _write_pools(run_ids: Sequence[int]) -> None:
    """Replace the pools of every model in these runs by sums over all pooled runs; set a new version."""
    models = set(RunConfig.objects.filter(run__in=run_ids).order_by().values_list("provider_name", "model_name"))
    for provider_name, model_name in sorted(models):
        CellPool.objects.filter(provider_name=provider_name, model_name=model_name).delete()
    names = sorted({model_name for _, model_name in models})
    runs = Run.objects.filter(Run.COUNTED, pooled=True)
    cells = Cell.objects.filter(run__in=runs, config__model_name__in=names)
    rows = [row for row in sum_cells(cells) if (row["provider_name"], row["model_name"]) in models]
    columns = [f"run__{name}" if name in RUN_FIELDS else name for name in _INSTANCE_KEY]
    trials = Trial.objects.filter(run__in=runs, config__model_name__in=names)
    repeated = sum_repeated_instances(trials.exclude(run__purpose=CONFIRMATION_PURPOSE), columns)
    CellPool.objects.bulk_create(
        [CellPool(**row, repeated=_get_repeated_sums(row, repeated)) for row in rows], batch_size=200
    )
    write_cause_pools(models)
    PoolState.objects.update_or_create(pk=1, defaults={"version": uuid4()})


def _get_repeated_sums(row: SumRow, repeated: RepeatedInstances) -> list[list[float]] | None:
    """Return the value of the column `repeated`; None for confirmation runs and published wordings."""
    if row["confirming"] or row["instance_kind"] != DRAWN:
        return None
    key = (*(row[name] for name in _INSTANCE_KEY), row["scenario"])
    return repeated.get(key, RepeatedSums()).to_json()
