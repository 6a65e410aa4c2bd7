"""The heat map of the failures page: causes by model."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from toolbench.evals.causes.table import load_causes
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.scenario_versions import ModelKey
from toolbench.lab.models import Trial
from toolbench.lab.results.failures.counts import FailureCounts, is_counted
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.trial_list.filter import TrialFilter

MAX_MODELS = 30


@dataclass(frozen=True, slots=True)
class HeatCause:
    """A cause or failure class, with its sentence.

    Attributes:
        is_known: whether the table of causes or failure classes has the code. Trials that another version classified
            may have other codes.
    """

    code: str
    sentence: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class HeatColumn:
    """The column of one model.

    Attributes:
        failure_count: number of trials with a cause or failure class, in all rows of the column.
        tried: number of trials that passed, failed or had an infrastructure error; at least `failure_count`.
        stopping: stopping design of the model's cells.
        versions: scenario versions that the column counts although another model has a newer one, each as "SCENARIO
            version N".
        provider_label: the provider if another column has a model of the same name; else "".
    """

    provider: str
    model: str
    failure_count: int
    tried: int
    stopping: StoppingDesign
    versions: tuple[str, ...]
    provider_label: str = ""

    @property
    def key(self) -> ModelKey:
        """Return provider and model."""
        return self.provider, self.model

    @property
    def name(self) -> str:
        """Return the model's name without the vendor before the last slash."""
        return self.model.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cause at one model.

    Attributes:
        rate: share of the model's trials that have this cause, infrastructure errors included.
        heat: strength of the colour, from 0 to 100: 100 times the square root of the share. The root makes rare causes
            visible.
        query: query string that lists the trials.
    """

    rate: Rate
    heat: float
    query: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One cause of the heat map.

    Attributes:
        count: number of trials with the cause in the newest version of each scenario.
        is_infra: whether all trials with the cause, in all scenario versions, had an infrastructure error.
        query: query string that lists the trials.
        cells: one cell for each column, counted in the newest scenario versions that the model has; None for a model
            without the cause.
    """

    cause: HeatCause
    count: int
    is_infra: bool
    query: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The heat map of causes by model.

    Attributes:
        columns: at most MAX_MODELS models with failures, most failures first.
        rows: the causes that were found, in the order of their table; after them, those that the table lacks.
        hidden_model_count: number of models with failures that have no column.
        failure_free_model_count: number of models with trials, but without failures.
        model_count: number of models with trials.
        failed: number of trials in all rows without an infrastructure error, in the newest version of each scenario.
        infra: number of trials in all rows with an infrastructure error, in the newest version of each scenario.
    """

    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]
    hidden_model_count: int
    failure_free_model_count: int
    model_count: int
    failed: int
    infra: int

    @property
    def total(self) -> int:
        """Return the number of trials in all rows, in the newest version of each scenario."""
        return self.failed + self.infra


def load_heat_causes(query: FailuresQuery) -> Mapping[str, HeatCause]:
    """Return the causes or failure classes that the page counts, by code, in the order of their table."""
    rows = load_classes() if query.counts_failure_classes else load_causes().values()
    return {row.code: HeatCause(row.code, row.sentence) for row in rows}


def build_heat_map(query: FailuresQuery, counts: FailureCounts, stopping: Mapping[ModelKey, StoppingDesign]) -> HeatMap:
    """Return the heat map, without an SQL query.

    Args:
        query: the scope, and whether causes or failure classes are counted.
        counts: the failed trials and all trials, by model.
        stopping: stopping design of each model with sequential stopping.
    """
    cells: dict[tuple[ModelKey, str], int] = Counter()
    totals, infra = Counter[str](), Counter[str]()
    codes_of_failed = set[str]()  # of trials without an infrastructure error, in all scenario versions
    for line in counts.lines:
        code, key = line.failure_class if query.counts_failure_classes else line.cause, (line.provider, line.model)
        if line.count and line.outcome != Trial.Outcome.INFRA:
            codes_of_failed.add(code)
        if is_counted(line, counts.models[key].left_out):
            cells[key, code] += line.count
        if is_counted(line, counts.omitted):
            totals[code] += line.count
            infra[code] += line.count if line.outcome == Trial.Outcome.INFRA else 0
    failure_counts = Counter[ModelKey]()
    for (key, _), count in cells.items():
        failure_counts[key] += count
    worst = sorted(failure_counts, key=lambda key: (-failure_counts[key], key))
    columns = _label_providers(
        [_build_column(key, failure_counts[key], counts, stopping) for key in worst[:MAX_MODELS]]
    )
    rows = tuple(
        HeatRow(
            cause,
            totals[cause.code],
            cause.code not in codes_of_failed,
            build_trials_query(query, counts, cause.code, without=counts.render_omitted_tokens(None)),
            tuple(
                _build_cell(query, counts, cause.code, column, cells.get((column.key, cause.code), 0))
                for column in columns
            ),
        )
        for cause in _list_causes(query, {code for _, code in cells})
    )
    return HeatMap(
        columns,
        rows,
        hidden_model_count=len(worst) - len(columns),
        failure_free_model_count=sum(1 for key in counts.tried if key not in failure_counts),
        model_count=len({*counts.tried, *failure_counts}),
        failed=totals.total() - infra.total(),
        infra=infra.total(),
    )


def _list_causes(query: FailuresQuery, codes: Set[str]) -> list[HeatCause]:
    """Return the causes with these codes in the order of their table, then those that it lacks, sorted by code."""
    causes = load_heat_causes(query)
    unknown_codes = sorted(codes - causes.keys())
    return [
        *(cause for code, cause in causes.items() if code in codes),
        *(HeatCause(code, f"{code}, unknown to this version of Toolbench", is_known=False) for code in unknown_codes),
    ]


def build_trials_query(
    query: FailuresQuery, counts: FailureCounts, code: str, *, model: ModelKey | None = None, **fields: Any
) -> str:
    """Return the query string of the list of the trials with this code, of one model or of all.

    Args:
        query: the scope.
        counts: only its version of the table of causes is used.
        code: cause code or failure class.
        model: the model; None for all models.
        fields: further fields of TrialFilter.
    """
    uses_scope = not query.runs
    code_fields: dict[str, Any] = (
        {"failure_class": code} if query.counts_failure_classes else {"cause": code, "cause_version": counts.version}
    )
    provider, model_name = model or ("", "")
    trial_filter = TrialFilter(
        run=query.run,
        runs=",".join(map(str, query.runs)) if len(query.runs) > 1 else "",
        demo="1" if query.scope == "demo" and uses_scope else "",
        imported="1" if query.scope == "imported" and uses_scope else "",
        chosen=replace(query.chosen, models=()) if model else query.chosen,
        provider=provider,
        model=model_name,
        **code_fields,
        **fields,
    )
    return trial_filter.query()


def _build_column(
    key: ModelKey, failure_count: int, counts: FailureCounts, stopping: Mapping[ModelKey, StoppingDesign]
) -> HeatColumn:
    behind = counts.models[key].behind
    versions = tuple(dict.fromkeys(f"{version.scenario} version {version.version}" for version in behind))
    tried = max(counts.tried.get(key, 0), failure_count)  # trials that were not applicable have a failure class too
    return HeatColumn(*key, failure_count, tried, stopping.get(key, FIXED_STOPPING), versions)


def _label_providers(columns: Sequence[HeatColumn]) -> tuple[HeatColumn, ...]:
    """Return the columns; those whose names are equal have a `provider_label`."""
    names = Counter(column.name for column in columns)
    return tuple(
        replace(column, provider_label=column.provider if names[column.name] > 1 else "") for column in columns
    )


def _build_cell(
    query: FailuresQuery, counts: FailureCounts, code: str, column: HeatColumn, count: int
) -> HeatCell | None:
    if not count:
        return None
    rate = build_rate(count, column.tried, stopping=column.stopping)
    heat = round(100 * (count / column.tried) ** 0.5, 1)
    omitted_versions = counts.render_omitted_tokens(column.key)
    link = build_trials_query(query, counts, code, model=column.key, without=omitted_versions)
    return HeatCell(rate, heat, link)
