"""Sums over the cells of many runs, from stored pools where the runs have ended.

A pool holds the sums of all ended runs with one configuration, scenario and version. Runs in progress are summed from
their cells on every call. A refresh derives a pool anew from its cells; nothing is ever added to a stored sum. While a
run of a pool has changed since, every figure is summed from cells, so that a page is always exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.contrib.postgres.aggregates import ArrayAgg, BoolOr
from django.db import connection, transaction
from django.db.models import BooleanField, Case, Exists, F, Max, Min, OuterRef, Q, QuerySet, Value, When

from toolbench.evals.types import DRAWN
from toolbench.lab.metrics.cause_pools import write_cause_pools
from toolbench.lab.metrics.pool_version import ENDED, read_usable_version
from toolbench.lab.metrics.repeated_instances import RepeatedInstances, RepeatedSums, find_repeated_instances
from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS, ResultFilter
from toolbench.lab.metrics.tally import build_aggregates
from toolbench.lab.metrics.times import build_time_aggregates
from toolbench.lab.models import Cell, CellPool, PoolState, Run, RunConfig, Trial

Line = dict[str, Any]

CONFIRMATION_PURPOSE = "confirm"  # of a run: its trials never enter a choice
CONFIG_FIELDS = (
    "provider_name", "provider_kind", "model_name", "profile", "strategy", "method", "examples", "tool_use_mode",
    "stream", "policy_hash",
)  # fmt: skip
CELL_FIELDS = ("instance_kind", "scenario_group", "control", "scenario", "scenario_version")
RUN_FIELDS = ("simulated", "imported", "confirming")
LINE_KEY = (*CONFIG_FIELDS, *CELL_FIELDS)
MAX_RUNS_PER_REFRESH = 500
_ID_ARRAYS = ("config_ids", "cell_ids", "run_ids")
_TEXT_ARRAYS = ("engines", "purposes", "canonicals", "prompts")
_ARRAYS = (*_ID_ARRAYS, *_TEXT_ARRAYS)
_TIMES = ("all_durations", "all_first_tokens")
_INSTANCE_KEY = ("simulated", "imported", *CONFIG_FIELDS, "instance_kind", "scenario_version")
_FLAGS = (*RUN_FIELDS, "mixed_upstreams")
_NO_SUM = {"sum_error", "sum_cost"}
_REFRESH_LOCK = 7_310_421  # of pg_try_advisory_xact_lock: one refresh at a time
_IS_CONFIRMING = Case(
    When(run__purpose=CONFIRMATION_PURPOSE, then=Value(True)), default=Value(False), output_field=BooleanField()
)


def sum_cells(cells: QuerySet[Cell], *extra_keys: str) -> list[Line]:
    """Return one line for each configuration, scenario, version and kind of run, with the sums over these cells.

    Args:
        cells: the cells to add up.
        extra_keys: further columns of a cell by which lines are kept apart.
    """
    key = (*RUN_FIELDS, *LINE_KEY, *extra_keys)
    named = {name: F(f"config__{name}") for name in CONFIG_FIELDS}
    kinds = {"simulated": F("run__simulated"), "imported": F("run__imported"), "confirming": _IS_CONFIRMING}
    grouped = cells.annotate(**named, **kinds).order_by().values(*key)
    return [dict(line) for line in grouped.annotate(**_build_annotations()).order_by(*key)]


@dataclass(frozen=True, slots=True)
class KeptSums:
    """Sums over all runs that are not deleted.

    Attributes:
        lines: in no order. A key may have several lines.
        version: the same version always has the same lines; None for sums that may change at any time.
    """

    lines: list[Line]
    version: UUID | None = None


def sum_kept_runs(chosen: ResultFilter, *, simulated: bool, imported: bool) -> KeptSums:
    """Return the chosen lines of all runs that are not deleted."""
    scope = {"simulated": simulated, "imported": imported}
    version = None if chosen.has_time else read_usable_version()
    if version is not None:
        pooled = [line for line in _load_pools(version, scope) if chosen.matches(line)]
        recent = _sum_kept_cells(chosen, scope, pooled=False)
        if read_usable_version() == version:
            return KeptSums([*pooled, *recent], None if recent else version)
    return KeptSums(_sum_kept_cells(chosen, scope))


def list_choices(*, simulated: bool, imported: bool, runs: Sequence[int] = ()) -> Mapping[str, tuple[str, ...]]:
    """Return the models, profiles, strategies and scenarios that were tried, by the name of their parameter.

    Args:
        simulated: whether runs of simulated models are in scope.
        imported: whether imported runs are in scope.
        runs: primary keys; the kinds do not count where runs are named.
    """
    columns = tuple(CHOICE_COLUMNS.values())
    cells = Cell.objects.filter(run__deleted_at=None).order_by()
    of_cells = [column if column == "scenario" else f"config__{column}" for column in columns]
    if runs:
        rows = set(cells.filter(run__in=runs).values_list(*of_cells).distinct())
    else:
        scope = {"simulated": simulated, "imported": imported}
        recent = cells.filter(run__pooled=False, **{f"run__{name}": value for name, value in scope.items()})
        pools = CellPool.objects.filter(**scope).order_by().values_list(*columns)
        rows = {*pools.distinct(), *recent.values_list(*of_cells).distinct()}
    return {name: tuple(sorted({row[index] for row in rows})) for index, name in enumerate(CHOICE_COLUMNS)}


def contains_name(line: Mapping[str, Any], text: str) -> bool:
    """Return whether the name of the model or the provider contains the text, in any case."""
    return text.lower() in line["model_name"].lower() or text.lower() in line["provider_name"].lower()


def merge_lines(lines: Iterable[Mapping[str, Any]], key: Sequence[str]) -> list[Line]:
    """Add up lines with an equal key. The result is ordered by the key and names the `hashes` of all policies."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(line[name] for name in key), []).append(line)
    return [_merge(groups[values]) for values in sorted(groups)]


def refresh_pools(max_runs: int = MAX_RUNS_PER_REFRESH) -> int:
    """Pool runs that have ended, and derive the pools of changed runs anew; return the number of these runs.

    The pools of all models of these runs are written again. Changes that are committed meanwhile keep their note, and
    the next refresh sees them.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_REFRESH_LOCK])
        if not cursor.fetchone()[0]:
            return 0
        noted = _take_notes(cursor)
        runs = _choose_runs(noted, max_runs)
        if runs:
            _write_pools(runs)
    return len(runs)


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


def _sum_kept_cells(chosen: ResultFilter, scope: Mapping[str, bool], *, pooled: bool | None = None) -> list[Line]:
    """Return the lines of kept runs from their cells: of all runs, or of those that are not pooled."""
    runs = Run.objects.filter(deleted_at=None, **scope)
    in_scope = runs if pooled is None else runs.filter(pooled=pooled)
    if pooled is not None and not in_scope.exists():  # takes less time than to write the statement of 90 columns
        return []
    return sum_cells(Cell.objects.filter(chosen.condition, run__in=in_scope))


@dataclass(slots=True)
class _PoolCache:
    """The pools of one version in memory, by scope. A new version gets a new object, so threads need no lock."""

    version: UUID | None = None
    lines: dict[tuple[bool, ...], list[Line]] = field(default_factory=dict)


_cache = _PoolCache()


def _load_pools(version: UUID, scope: Mapping[str, bool]) -> list[Line]:
    """Return the lines of the pools. They are shared between calls and must not be modified."""
    global _cache
    cache = _cache
    if cache.version != version:
        cache = _cache = _PoolCache(version)
    key = tuple(scope.values())
    if key not in cache.lines:
        cache.lines[key] = [_read_pool(dict(row)) for row in CellPool.objects.filter(**scope).values()]
    return cache.lines[key]


def _read_pool(row: Mapping[str, Any]) -> Line:
    """Return the row as a query over cells would: with whole numbers as int."""
    return {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items() if name != "id"}


def _merge(lines: Sequence[Mapping[str, Any]]) -> Line:
    hashes = tuple(sorted({line["policy_hash"] for line in lines}))
    if len(lines) == 1:
        return {**lines[0], "hashes": hashes}
    merged = {**lines[0], "repeated": None}  # an instance may be repeated across lines
    for name in lines[0]:
        values = [line[name] for line in lines]
        if name in _ARRAYS:
            merged[name] = sorted({item for found in values for item in found})
        elif name in _TIMES:
            merged[name] = b"".join(bytes(found or b"") for found in values)
        elif name in _NO_SUM:
            known = [found for found in values if found is not None]
            merged[name] = (min(known) if name == "sum_error" else sum(known)) if known else None
        elif name.startswith("sum_"):
            merged[name] = sum(values)
        elif name in _FLAGS:
            merged[name] = any(values)
    return merged | {
        "hashes": hashes,
        "first": min(line["first"] for line in lines),
        "last": max(line["last"] for line in lines),
    }


def _take_notes(cursor: Any) -> list[int]:
    cursor.execute("DELETE FROM lab_runchange RETURNING run_id")
    return sorted({row[0] for row in cursor.fetchall()})


def _choose_runs(noted: Sequence[int], max_runs: int) -> list[int]:
    """Mark which runs are pooled; return the runs whose pools are written anew."""
    settled = ENDED & Q(deleted_at=None)
    lost = Run.objects.filter(Q(pooled=True) & (~settled | Q(pk__in=noted)))
    changed = list(lost.values_list("pk", flat=True))
    Run.objects.filter(Q(pk__in=changed) & ~settled).update(pooled=False)
    open_cells = Exists(Cell.objects.filter(run=OuterRef("pk"), stale=True))
    ended = Run.objects.filter(settled, pooled=False).exclude(open_cells).order_by("pk")
    chosen = list(ended.values_list("pk", flat=True)[:max_runs])
    Run.objects.filter(pk__in=chosen).update(pooled=True)
    return [*changed, *chosen]


def _write_pools(runs: Sequence[int]) -> None:
    models = set(RunConfig.objects.filter(run__in=runs).order_by().values_list("provider_name", "model_name"))
    for provider_name, model_name in sorted(models):
        CellPool.objects.filter(provider_name=provider_name, model_name=model_name).delete()
    names = sorted({model_name for _, model_name in models})
    cells = Cell.objects.filter(run__pooled=True, config__model_name__in=names)
    lines = sum_cells(cells)
    kept = [line for line in lines if (line["provider_name"], line["model_name"]) in models]
    columns = [f"run__{name}" if name in RUN_FIELDS else name for name in _INSTANCE_KEY]
    trials = Trial.objects.filter(run__pooled=True, config__model_name__in=names)
    repeated = find_repeated_instances(trials.exclude(run__purpose=CONFIRMATION_PURPOSE), columns)
    CellPool.objects.bulk_create(
        [CellPool(**line, repeated=_get_repeated(line, repeated)) for line in kept], batch_size=200
    )
    write_cause_pools(models)
    PoolState.objects.update_or_create(pk=1, defaults={"version": uuid4()})


def _get_repeated(line: Line, repeated: RepeatedInstances) -> list[list[float]] | None:
    if line["confirming"] or line["instance_kind"] != DRAWN:
        return None
    key = (*(line[name] for name in _INSTANCE_KEY), line["scenario"])
    return repeated.get(key, RepeatedSums()).to_json()
