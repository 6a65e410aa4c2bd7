"""Matrix: each row is a model with its settings, summed over cells. No trial is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from django.db.models import Q, QuerySet

from toolbench.lab.metrics.cause_pools import build_kind_conditions
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.pools import RunSums, SumRow, sum_all_runs, sum_cells
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_versions import build_omission_notice
from toolbench.lab.metrics.tally import add_tallies
from toolbench.lab.metrics.values import Metric
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, PublishedCell, Run
from toolbench.lab.results.matrix.pooled_rows import PooledRows, list_extra_keys, pool_rows
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.rows import (
    FIELD_LABELS,
    SETTING_FIELDS,
    MatrixRow,
    ProviderGroup,
    ScenarioSums,
    apply_metric,
    label_setting,
)
from toolbench.lab.results.run_choices import ADDED_MANUALLY, MAX_TIME_BETWEEN_RUNS, RETRIED, list_run_choices
from toolbench.lab.results.table_layout import USUAL_LAYOUT


@dataclass(frozen=True, slots=True)
class MatrixSummary:
    """Summary of the rows, compared with the target and with each other.

    Attributes:
        trials: number of trials that have ended, controls included.
        ranked: number of rows that are compared; rows without a value, or with an older version of a scenario than
            another row, are not.
        clears: number of ranked rows whose interval lies above the target; this and the next two are 0 if the metric is
            no rate.
        undecided: number of ranked rows whose interval includes the target or is withheld; all ranked rows if the
            metric is a rate without a target.
        below: number of ranked rows whose interval lies below the target.
        overlapping: number of ranked rows that may be as good as the best one, which is not counted: the result of
            `count_overlapping`.
        control_success: answered success of controls, pooled over their newest versions.
        infra: number of tool trials that ended with an infrastructure error.
        not_applicable: number of published rows whose tools were off; 0 for measured rows.
    """

    trials: int
    ranked: int
    clears: int
    undecided: int
    below: int
    overlapping: int
    control_success: Rate
    infra: int
    not_applicable: int = 0


@dataclass(frozen=True, slots=True)
class Matrix:
    """Everything that the matrix page shows.

    Attributes:
        rows_by_provider: a group for each provider.
        common_settings: values of the settings that are equal in all rows and not empty, by label.
        differing_settings: names of the settings that differ between rows; all names without rows.
        scenario_groups: groups of scenarios that the page offers.
        runs: runs that the page offers as choices.
        warnings: sentences about limits of the figures.
        prompts: prompt versions that the page offers as choices.
        version: version of the stored sums; None if the matrix must not be cached.
        is_all_simulated: whether it has rows and all of them are simulated models.
    """

    query: MatrixQuery
    metric: Metric
    rows_by_provider: tuple[ProviderGroup, ...]
    common_settings: Mapping[str, str]
    differing_settings: tuple[str, ...]
    summary: MatrixSummary
    scenario_groups: tuple[str, ...]
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]
    prompts: tuple[str, ...]
    version: UUID | None = None
    is_all_simulated: bool = False

    @property
    def rows(self) -> tuple[MatrixRow, ...]:
        """Return the rows of all providers."""
        return tuple(row for _, rows in self.rows_by_provider for row in rows)


_matrices: VersionCache[Matrix] = VersionCache(max_entries=8)
_cell_sums: VersionCache[list[SumRow]] = VersionCache(max_entries=8)  # callers share the rows and must not modify them


def get_matrix(query: MatrixQuery) -> Matrix:
    """Return the matrix with a number of SQL queries that does not depend on the number of runs and trials.

    A matrix over ended runs is kept in memory until their sums change.
    """
    sums, published = sum_matrix_rows(query), _read_published_counts()
    cache_query = replace(query, layout=USUAL_LAYOUT)  # columns and density change no value
    key = (cache_query, tuple(sorted(published.items())))
    matrix = _matrices.get(
        sums.version,
        key,
        lambda: _build_matrix(cache_query, pool_rows(cache_query, sums.version, lambda: sums.rows, published)),
    )
    return replace(
        matrix,
        query=replace(matrix.query, layout=query.layout),
        version=sums.version,
        runs=list_run_choices(_filter_runs(query) | Run.objects.filter(pk__in=query.runs, deleted_at=None), query.runs),
        prompts=matrix.prompts or _query_prompt_versions(query),
    )


def build_matrix(query: MatrixQuery, version: UUID | None, read_sums: Callable[[], list[SumRow]]) -> Matrix:
    """Return the matrix of the sums from `read_sums`, without published figures and without runs to choose from.

    Args:
        query: scope, metric, filter and layout.
        version: version of the sums; None if the matrix must not be cached.
        read_sums: returns the sums of the runs that the query selects; called only if they are not cached.
    """
    cache_query = replace(query, layout=USUAL_LAYOUT)
    matrix = _matrices.get(
        version, (cache_query, "sums"), lambda: _build_matrix(cache_query, pool_rows(cache_query, version, read_sums))
    )
    return replace(matrix, query=replace(matrix.query, layout=query.layout), version=version)


def _build_matrix(query: MatrixQuery, pooled: PooledRows) -> Matrix:
    """Return the matrix without the runs to choose from."""
    query = replace(query, group="" if pooled.is_default_group else pooled.group)
    rows = _mark_repeated_models(
        _add_versions([apply_metric(row, query) for row in pooled.rows], METRICS[query.metric])
    )
    common_settings = (
        {name: rows[0].settings[name] for name in SETTING_FIELDS if len({row.settings[name] for row in rows}) == 1}
        if rows
        else {}
    )
    return Matrix(
        query=query,
        metric=METRICS[query.metric],
        rows_by_provider=tuple(
            ProviderGroup(name, tuple(provider_rows))
            for name, provider_rows in groupby(rows, key=lambda row: row.provider)
        ),
        common_settings={
            FIELD_LABELS.get(name, name): label_setting(name, value) for name, value in common_settings.items() if value
        },
        differing_settings=tuple(name for name in SETTING_FIELDS if name not in common_settings),
        summary=_build_summary(rows),
        scenario_groups=pooled.scenario_groups,
        runs=(),
        warnings=_list_warnings(rows, pooled.sums),
        prompts=_list_prompt_versions(query, pooled.sums),
        is_all_simulated=bool(rows) and all(row.simulated for row in rows),
    )


def choose_scope(query: MatrixQuery) -> MatrixQuery:
    """Return the query with a scope, with at most one SQL query.

    The default is the runs of real providers if there are any, else the published figures.
    """
    if query.scope:
        return query
    has_real_runs = Run.objects.filter(Run.COUNTED, simulated=False, imported=False, deleted_at=None).exists()
    return replace(query, scope="real" if has_real_runs else "published")


def filter_matrix_cells(query: MatrixQuery) -> QuerySet[Cell]:
    """Return the cells of the query's scope, prompt version and filter, without those of deleted runs.

    Simulated and imported runs are included only in the scopes `demo` and `imported`, or if the scope is `runs`.
    """
    cells = Cell.objects.filter(query.chosen.condition, run__deleted_at=None)
    if query.prompt not in ("", SPLIT_BY_PROMPT):
        cells = cells.filter(prompt_version=query.prompt)
    if query.scope == "runs":
        # The condition on config__run changes no result. It keeps PostgreSQL from reading all configurations.
        return cells.filter(run_id__in=query.runs, config__run__in=query.runs)
    return cells.filter(run__in=_filter_runs(query))


def _filter_runs(query: MatrixQuery) -> QuerySet[Run]:
    """Return the imported runs, the simulated runs or, for any other scope, the runs of real providers.

    The form offers the runs of real providers beside the chosen ones of the scope `runs`.
    """
    conditions = build_kind_conditions(simulated=query.scope == "demo", imported=query.scope == "imported")
    return Run.objects.filter(Run.COUNTED, deleted_at=None, **conditions)


def sum_matrix_rows(query: MatrixQuery) -> RunSums:
    """Return sums over the selected cells. Several may belong to the same configuration, scenario and version."""
    if query.scope == "runs" or query.prompt:
        version = find_pool_version(Q(pk__in=query.runs) if query.scope == "runs" else Q())
        key = (query.scope, query.runs, query.prompt, query.chosen)
        return RunSums(_cell_sums.get(version, key, lambda: _sum_matrix_cells(query)), version)
    return sum_all_runs(query.chosen, simulated=query.scope == "demo", imported=query.scope == "imported")


def _sum_matrix_cells(query: MatrixQuery) -> list[SumRow]:
    return sum_cells(filter_matrix_cells(query), *list_extra_keys(query))


def _add_versions(rows: list[MatrixRow], metric: Metric) -> list[MatrixRow]:
    """Set `versions` and `outdated` of each row.

    Only rows with the same instance kind are compared. `outdated` lists controls if the metric covers controls only,
    else tool scenarios.
    """
    shown_versions: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for scenario in row.scenarios:
            shown_versions.setdefault((row.settings["instance_kind"], scenario.scenario), set()).add(scenario.version)
    newest = find_newest_versions(rows)
    return [
        replace(
            row,
            versions=tuple(
                sorted(
                    {
                        scenario.version
                        for scenario in row.scenarios
                        if len(shown_versions[row.settings["instance_kind"], scenario.scenario]) > 1
                    }
                )
            ),
            outdated=tuple(
                f"{outdated.scenario} version {outdated.version}"
                for outdated in _list_outdated_scenarios(row, newest)
                if outdated.control == metric.of_control
            ),
        )
        for row in rows
    ]


NewestVersions = Mapping[tuple[str, str], int]  # newest version by (instance kind, scenario)


def find_newest_versions(rows: Sequence[MatrixRow]) -> NewestVersions:
    """Return the newest version of each scenario for each instance kind.

    Only versions with a trial that passed, failed or had an infrastructure error are considered.
    """
    newest: dict[tuple[str, str], int] = {}
    for row in rows:
        for scenario in row.scenarios:
            if scenario.tally.tried:
                key = row.settings["instance_kind"], scenario.scenario
                newest[key] = max(scenario.version, newest.get(key, scenario.version))
    return newest


def _list_outdated_scenarios(row: MatrixRow, newest: NewestVersions) -> list[ScenarioSums]:
    """Return the outdated scenarios of the row."""
    return [scenario for scenario in row.scenarios if _is_outdated(row, scenario, newest)]


def _is_outdated(row: MatrixRow, scenario: ScenarioSums, newest: NewestVersions) -> bool:
    """Return whether a scenario of the row has an older version than the newest one.

    It must have a trial that passed, failed or had an infrastructure error.
    """
    key = row.settings["instance_kind"], scenario.scenario
    return scenario.version < newest.get(key, 0) and scenario.tally.tried > 0


def _mark_repeated_models(rows: list[MatrixRow]) -> list[MatrixRow]:
    """Mark each row whose predecessor has the same model at the same provider."""
    pairs = zip(rows, [None, *rows], strict=False)
    return [
        replace(row, repeats_model=bool(previous and (previous.provider, previous.model) == (row.provider, row.model)))
        for row, previous in pairs
    ]


def _build_summary(rows: list[MatrixRow]) -> MatrixSummary:
    ranked, newest = [row for row in rows if row.ranked], find_newest_versions(rows)
    rates = [row.rate for row in ranked if row.rate]
    statuses = [rate.target_status for rate in rates]
    controls = (
        scenario.tally
        for row in rows
        for scenario in row.scenarios
        if scenario.control and not _is_outdated(row, scenario, newest)
    )
    return MatrixSummary(
        trials=sum(row.tally.ended + row.control.ended for row in rows),
        ranked=len(ranked),
        clears=statuses.count("clears"),
        undecided=statuses.count("open"),
        below=statuses.count("below"),
        overlapping=count_overlapping(rates),
        control_success=add_tallies(controls).compute_answered_success(),
        infra=sum(row.tally.infra for row in rows),
    )


def count_overlapping(rates: Sequence[Rate]) -> int:
    """Return how many rates may be as good as the best one, which is not counted.

    The best rate is the one with the highest lower bound. Another rate may be as good if its interval overlaps with the
    interval of the best rate, or is withheld.
    """
    best_low = max((rate.low for rate in rates if not rate.withheld), default=0.0)
    best_or_overlapping = sum(rate.withheld or rate.high >= best_low for rate in rates)
    return max(best_or_overlapping - 1, 0)


def _list_prompt_versions(query: MatrixQuery, sum_rows: list[SumRow]) -> tuple[str, ...]:
    """Return the prompt versions in the rows; () if one version is chosen, since the rows then lack the others."""
    if query.prompt not in ("", SPLIT_BY_PROMPT):
        return ()
    return tuple(sorted({prompt for sum_row in sum_rows for prompt in sum_row["prompts"] if prompt}))


def _query_prompt_versions(query: MatrixQuery) -> tuple[str, ...]:
    """Return all prompt versions of the scope and filter, with one query; () if no prompt version is chosen."""
    if query.prompt in ("", SPLIT_BY_PROMPT):
        return ()
    cells = filter_matrix_cells(replace(query, prompt="")).exclude(prompt_version="").order_by("prompt_version")
    return tuple(cells.values_list("prompt_version", flat=True).distinct())


def _read_published_counts() -> Mapping[tuple[str, str], str]:
    """Return `MatrixRow.published` by model and profile."""
    cells = PublishedCell.objects.order_by().values_list("model", "profile", "tool_ok", "tool_runs", "not_applicable")
    return {
        (model, profile): "with tools off" if is_off else f"{ok}/{runs}" for model, profile, ok, runs, is_off in cells
    }


def _list_warnings(rows: list[MatrixRow], sum_rows: list[SumRow]) -> tuple[str, ...]:
    differing = tuple(dict.fromkeys(difference for row in rows for difference in row.differing))
    pooled_rows = [row for row in rows if len(row.run_ids) > 1]
    max_start_difference = max((sum_row["last"] - sum_row["first"] for sum_row in sum_rows), default=timedelta())
    added_manually = sum(row.tally.added_by_hand for row in rows)
    retried = sum(row.tally.errors_retried for row in rows)
    saturated = sum(row.tally.saturated for row in rows)
    uncomputed_cells = sum(row.tally.uncomputed_cells + row.control.uncomputed_cells for row in rows)
    sequential = any(
        row.tally.min_error_probability is not None or row.control.min_error_probability is not None for row in rows
    )
    omitted_versions = [row.omitted for row in rows if row.omitted]
    outdated, newest = [row.outdated for row in rows if row.outdated], find_newest_versions(rows)
    controls = [scenario for row in rows for scenario in _list_outdated_scenarios(row, newest) if scenario.control]
    old_controls = ", ".join(sorted({f"{control.scenario} version {control.version}" for control in controls}))
    applies_by_warning = {
        build_omission_notice(omitted_versions): bool(omitted_versions),
        _build_unranked_warning(outdated): bool(outdated),
        f"The control does not count {old_controls}, since other rows have a newer version.": bool(old_controls),
        "Some of these runs were imported: they were not made here.": any(sum_row["imported"] for sum_row in sum_rows),
        f"Some rows pool runs with different {' and '.join(differing)}; they are marked.": bool(differing),
        "Some rows pool runs that began more than an hour apart.": bool(pooled_rows)
        and max_start_difference > MAX_TIME_BETWEEN_RUNS,
        f"{ADDED_MANUALLY} Their number: {added_manually}.": bool(added_manually),
        f"{RETRIED} Their number: {retried}.": bool(retried),
        f"Cells that could not be computed: {uncomputed_cells}. Calls, tokens, cost and times omit them.": bool(
            uncomputed_cells
        ),
        f"Trials measured while this machine was overloaded: {saturated}. "
        "Their times are too long: repeat them with fewer trials at once.": bool(saturated),
        "Some cells used sequential stopping: their intervals are anytime-valid.": sequential,
    }
    return tuple(sentence for sentence, applies in applies_by_warning.items() if applies)


def _build_unranked_warning(outdated: Sequence[Sequence[str]]) -> str:
    """Return the warning about rows that are not ranked.

    Args:
        outdated: `MatrixRow.outdated` of each row that is not ranked.
    """
    versions_text = ", ".join(sorted({version for versions in outdated for version in versions}))
    rows_text = "1 row is" if len(outdated) == 1 else f"{len(outdated)} rows are"
    return (
        f"{rows_text} not ranked, since other rows have newer versions than {versions_text}. Versions are different "
        "tasks."
    )
