"""The matrix: rows are models with their settings, summed over cells. No trial is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from toolbench.lab.metrics.cells import MAX_START_DIFFERENCE
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.pools import RunSums, SumRow, contains_name, merge_rows, sum_all_runs, sum_cells
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import DEFAULT_GROUP, build_group_sort_key
from toolbench.lab.metrics.scenario_versions import build_omission_notice
from toolbench.lab.metrics.tally import add_tallies
from toolbench.lab.metrics.values import Metric
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, PublishedCell, Run
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.rows import FIELD_LABELS, ROW_KEY, SETTING_FIELDS, MatrixRow, ScenarioSums, build_row
from toolbench.lab.results.run_choices import list_run_choices
from toolbench.lab.results.table_layout import USUAL_LAYOUT

SCENARIO_KEY = ("scenario_group", "control", "scenario", "scenario_version")


@dataclass(frozen=True, slots=True)
class MatrixSummary:
    """The rows in relation to the target and to each other.

    Attributes:
        ranked: rows that are compared; rows with an earlier version of a scenario than others are not.
        clears: ranked rows whose interval lies above the target.
        undecided: ranked rows whose interval includes the target.
        below: ranked rows whose interval lies below the target.
        overlapping: other ranked rows whose intervals overlap with that of the best; 0 if one row is above all others.
        control: success of the newest version of each control.
    """

    trials: int
    ranked: int
    clears: int
    undecided: int
    below: int
    overlapping: int
    control: Rate
    infra: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """Everything that the matrix page shows."""

    query: MatrixQuery
    metric: Metric
    groups: tuple[tuple[str, tuple[MatrixRow, ...]], ...]
    same: Mapping[str, str]  # what is asked in the same way in every row
    varies: tuple[str, ...]
    summary: MatrixSummary
    scenario_groups: tuple[str, ...]
    runs: tuple[Run, ...]  # to choose from
    warnings: tuple[str, ...]
    prompts: tuple[str, ...]  # versions to choose from
    version: UUID | None = None  # of the stored sums it was computed from; None if it may change at any time

    @property
    def rows(self) -> tuple[MatrixRow, ...]:
        """Return the rows of all groups."""
        return tuple(row for _, rows in self.groups for row in rows)


_matrices: VersionCache[Matrix] = VersionCache(max_entries=8)
_lines: VersionCache[list[SumRow]] = VersionCache(max_entries=8)  # shared between calls: they must not be modified


def get_matrix(query: MatrixQuery) -> Matrix:
    """Return the matrix with six queries at most, whatever the number of runs and trials.

    A matrix over ended runs is kept in memory until their sums change.
    """
    sums, published = sum_matrix_rows(query), _read_published_counts()
    counted = replace(query, layout=USUAL_LAYOUT)  # columns and density change no figure
    key = (counted, tuple(sorted(published.items())))
    matrix = _matrices.get(sums.version, key, lambda: _build_matrix(counted, sums.rows, published))
    return replace(
        matrix,
        query=replace(matrix.query, layout=query.layout),
        version=sums.version,
        runs=list_run_choices(_filter_runs(query), query.runs),
        prompts=matrix.prompts or _list_prompt_versions(query),
    )


def build_matrix(query: MatrixQuery, version: UUID | None, read_sums: Callable[[], list[SumRow]]) -> Matrix:
    """Return the matrix of some sums, without published figures and runs to choose from.

    Args:
        query: what the page asks for.
        version: of the sums; a matrix with one is kept in memory.
        read_sums: returns the sums of the runs of the query.
    """
    counted = replace(query, layout=USUAL_LAYOUT)
    matrix = _matrices.get(version, (counted, "sums"), lambda: _build_matrix(counted, read_sums(), {}))
    return replace(matrix, query=replace(matrix.query, layout=query.layout), version=version)


def _build_matrix(query: MatrixQuery, sums: list[SumRow], published: Mapping[tuple[str, str], str]) -> Matrix:
    """Return the matrix without the runs to choose from."""
    named = [line for line in sums if contains_name(line, query.q)]
    found = merge_rows(named, (*ROW_KEY, *_list_split(query), *SCENARIO_KEY))
    present = {line["scenario_group"] for line in found} - {"control"}
    group = query.group if query.group in present else _choose_default_group(present)
    query = replace(query, group="" if group == _choose_default_group(present) else group)
    tried = (build_row(lines, query, group, published) for lines in group_by_row(found))
    rows = _mark_repeated_models(_add_versions([row for row in tried if row is not None], METRICS[query.metric]))
    same = (
        {name: rows[0].settings[name] for name in SETTING_FIELDS if len({row.settings[name] for row in rows}) == 1}
        if rows
        else {}
    )
    return Matrix(
        query=query,
        metric=METRICS[query.metric],
        groups=tuple(
            (name, tuple(provider_rows)) for name, provider_rows in groupby(rows, key=lambda row: row.provider)
        ),
        same={FIELD_LABELS.get(name, name): value for name, value in same.items() if value},
        varies=tuple(name for name in SETTING_FIELDS if name not in same),
        summary=_build_summary(rows),
        scenario_groups=tuple(sorted(present, key=build_group_sort_key)),
        runs=(),
        warnings=_list_warnings(rows, found),
        prompts=_collect_prompts(query, found),
    )


def choose_scope(query: MatrixQuery) -> MatrixQuery:
    """Return the query with a scope, with one query of the database at most.

    The default is the user's own runs if there are any, else the published figures.
    """
    if query.scope:
        return query
    has_own_runs = Cell.objects.filter(run__simulated=False, run__imported=False, run__deleted_at=None).exists()
    return replace(query, scope="real" if has_own_runs else "published")


def filter_matrix_cells(query: MatrixQuery) -> QuerySet[Cell]:
    """Return the cells of a scope.

    Simulated and imported runs are only in scopes of their own or where they are named.
    """
    cells = Cell.objects.filter(query.chosen.condition, run__deleted_at=None)
    if query.prompt not in ("", SPLIT_BY_PROMPT):
        cells = cells.filter(prompt_version=query.prompt)
    if query.scope == "runs":
        return cells.filter(run_id__in=query.runs)
    return cells.filter(run__in=_filter_runs(query))


def _filter_runs(query: MatrixQuery) -> QuerySet[Run]:
    """Return the runs of a scope; for scope "runs", those to choose from beside the named ones."""
    kept = Run.objects.filter(deleted_at=None)
    if query.scope == "imported":
        return kept.filter(imported=True)
    return kept.filter(imported=False, simulated=query.scope == "demo")


def sum_matrix_rows(query: MatrixQuery) -> RunSums:
    """Return the sums over the cells of a scope: a line for each configuration, scenario and version, or several."""
    if query.scope == "runs" or query.prompt:
        version = find_pool_version(Q(pk__in=query.runs) if query.scope == "runs" else Q())
        key = (query.scope, query.runs, query.prompt, query.chosen)
        return RunSums(_lines.get(version, key, lambda: _sum_matrix_cells(query)), version)
    return sum_all_runs(query.chosen, simulated=query.scope == "demo", imported=query.scope == "imported")


def _sum_matrix_cells(query: MatrixQuery) -> list[SumRow]:
    return sum_cells(filter_matrix_cells(query), *_list_split(query))


def _list_split(query: MatrixQuery) -> tuple[str, ...]:
    """Return the further columns by which rows are kept apart."""
    return ("prompt_version",) if query.prompt == SPLIT_BY_PROMPT else ()


def group_by_row(lines: list[SumRow]) -> list[list[SumRow]]:
    """Return the lines of each row of the matrix."""
    groups: dict[tuple[Any, ...], list[SumRow]] = {}
    for line in lines:
        groups.setdefault((*(line[name] for name in ROW_KEY), line.get("prompt_version")), []).append(line)
    return list(groups.values())


def _add_versions(rows: list[MatrixRow], metric: Metric) -> list[MatrixRow]:
    """Add the versions of scenarios that are shown in several versions with the same instance kind."""
    seen: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for scenario in row.scenarios:
            seen.setdefault((row.settings["instance_kind"], scenario.scenario), set()).add(scenario.version)
    newest = _newest_tried(rows)
    return [
        replace(
            row,
            versions=tuple(
                sorted(
                    {
                        scenario.version
                        for scenario in row.scenarios
                        if len(seen[row.settings["instance_kind"], scenario.scenario]) > 1
                    }
                )
            ),
            outdated=tuple(
                f"{outdated.scenario} version {outdated.version}"
                for outdated in _outdated(row, newest)
                if outdated.control == metric.of_control
            ),
        )
        for row in rows
    ]


Newest = Mapping[tuple[str, str], int]


def _newest_tried(rows: list[MatrixRow]) -> Newest:
    """Return the newest version with finished trials, by instance kind and scenario."""
    newest: dict[tuple[str, str], int] = {}
    for row in rows:
        for scenario in row.scenarios:
            if scenario.tally.tried:
                place = row.settings["instance_kind"], scenario.scenario
                newest[place] = max(scenario.version, newest.get(place, scenario.version))
    return newest


def _outdated(row: MatrixRow, newest: Newest) -> list[ScenarioSums]:
    """Return the scenarios with finished trials of which another row tried a newer version."""
    kind = row.settings["instance_kind"]
    return [
        scenario
        for scenario in row.scenarios
        if scenario.tally.tried and scenario.version < newest[kind, scenario.scenario]
    ]


def _mark_repeated_models(rows: list[MatrixRow]) -> list[MatrixRow]:
    """Mark each row whose predecessor has the same model at the same provider."""
    pairs = zip(rows, [None, *rows], strict=False)
    return [replace(row, again=bool(up and (up.provider, up.model) == (row.provider, row.model))) for row, up in pairs]


def _build_summary(rows: list[MatrixRow]) -> MatrixSummary:
    ranked, newest = [row for row in rows if row.ranked], _newest_tried(rows)
    judged = [row.rate for row in ranked if row.rate]
    against = [rate.target_status for rate in judged]
    best = max((rate.low for rate in judged if not rate.withheld), default=0.0)
    near = sum(rate.withheld or rate.high >= best for rate in judged)
    controls = (
        scenario.tally
        for row in rows
        for scenario in row.scenarios
        if scenario.control and scenario not in _outdated(row, newest)
    )
    return MatrixSummary(
        trials=sum(row.tally.done + row.control.done for row in rows),
        ranked=len(ranked),
        clears=against.count("clears"),
        undecided=against.count("open"),
        below=against.count("below"),
        overlapping=max(near - 1, 0),
        control=add_tallies(controls).answered_success(),
        infra=sum(row.tally.infra for row in rows),
    )


def _collect_prompts(query: MatrixQuery, lines: list[SumRow]) -> tuple[str, ...]:
    """Return the prompt versions of these lines; () where one version was chosen, which leaves the others out."""
    if query.prompt not in ("", SPLIT_BY_PROMPT):
        return ()
    return tuple(sorted({prompt for line in lines for prompt in line["prompts"] if prompt}))


def _list_prompt_versions(query: MatrixQuery) -> tuple[str, ...]:
    if query.prompt in ("", SPLIT_BY_PROMPT):
        return ()
    found = filter_matrix_cells(replace(query, prompt="")).exclude(prompt_version="").order_by("prompt_version")
    return tuple(found.values_list("prompt_version", flat=True).distinct())


def _choose_default_group(present: set[str]) -> str:
    return DEFAULT_GROUP if DEFAULT_GROUP in present or not present else min(present)


def _read_published_counts() -> Mapping[tuple[str, str], str]:
    cells = PublishedCell.objects.order_by().values_list("model", "profile", "tool_ok", "tool_runs")
    return {(model, profile): f"{ok}/{runs}" for model, profile, ok, runs in cells}


def _list_warnings(rows: list[MatrixRow], lines: list[dict[str, Any]]) -> tuple[str, ...]:
    differing = tuple(dict.fromkeys(difference for row in rows for difference in row.differing))
    pooled_rows = [row for row in rows if len(row.run_ids) > 1]
    apart = max((line["last"] - line["first"] for line in lines), default=timedelta())
    by_hand = sum(row.tally.added_by_hand for row in rows)
    retried = sum(row.tally.errors_retried for row in rows)
    saturated = sum(row.tally.saturated for row in rows)
    set_aside = sum(row.tally.set_aside + row.control.set_aside for row in rows)
    sequential = any(row.tally.error is not None or row.control.error is not None for row in rows)
    earlier = [token for row in rows for token in row.trials.without.split(",") if token]
    outdated, newest = [row.outdated for row in rows if row.outdated], _newest_tried(rows)
    controls = [outdated for row in rows for outdated in _outdated(row, newest) if outdated.control]
    old_controls = ", ".join(sorted({f"{control.scenario} version {control.version}" for control in controls}))
    found = {
        build_omission_notice(earlier): bool(earlier),
        _say_unranked(outdated): bool(outdated),
        f"Not counted in the control, since other rows have a newer version: {old_controls}.": bool(old_controls),
        "Imported runs are counted here: they were tried elsewhere.": any(line["imported"] for line in lines),
        f"Some rows pool runs with different {' and '.join(differing)}; they are marked.": bool(differing),
        "Some rows pool runs that began more than an hour apart.": bool(pooled_rows) and apart > MAX_START_DIFFERENCE,
        f"{by_hand} trials were added by hand after looking: no decision rests on them.": bool(by_hand),
        f"{retried} trials were tried again after an error: delivered success counts them as failures.": bool(retried),
        f"Cells left out of calls, tokens, cost and times, as not computable: {set_aside}.": bool(set_aside),
        f"Trials measured while this machine was overloaded: {saturated}.": bool(saturated),
        "Some cells used sequential stopping: their intervals are anytime-valid.": sequential,
    }
    return tuple(sentence for sentence, holds in found.items() if holds)


def _say_unranked(outdated: Sequence[Sequence[str]]) -> str:
    named = ", ".join(sorted({version for versions in outdated for version in versions}))
    return (
        f"Not ranked: {len(outdated)} row{'s' if len(outdated) > 1 else ''} with {named}, since other rows have a "
        "newer version. Versions are different tasks."
    )
