"""The heat map of the failures page: causes by model."""

from collections import Counter
from collections.abc import Mapping
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
    """A row of the table of causes, or of the failure classes."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class HeatColumn:
    """One model, with the scenario versions of which only other models tried a newer one.

    Attributes:
        failed: trials in the cells of the column.
        tried: trials that passed, failed or had an infrastructure error.
    """

    provider: str
    model: str
    failed: int
    tried: int
    stopping: StoppingDesign
    versions: tuple[str, ...]

    @property
    def key(self) -> ModelKey:
        """Return provider and model."""
        return self.provider, self.model

    @property
    def name(self) -> str:
        """Return the model's name without its prefix."""
        return self.model.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cause at one model.

    Attributes:
        heat: 100 times the square root of the share, from 0 to 100, so that rare causes can be seen.
        query: the query string that lists the trials.
    """

    rate: Rate
    heat: float
    query: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One cause of the heat map.

    Attributes:
        count: trials in the newest version of each scenario.
        is_infra: whether all of its trials had an infrastructure error.
        cells: one per column, counted in the newest version that the model tried; None without such failures.
    """

    cause: HeatCause
    count: int
    is_infra: bool
    query: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The heat map.

    Attributes:
        columns: models with failures, most failures first.
        left_out: models with failures that have no column.
        without_failure: models that were tried and have no failure.
        model_count: models that were tried.
        failed: trials in all rows without an infrastructure error, in the newest version of each scenario.
        infra: trials in all rows with one.
    """

    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]
    left_out: int
    without_failure: int
    model_count: int
    failed: int
    infra: int

    @property
    def total(self) -> int:
        """Return the trials in all rows."""
        return self.failed + self.infra


def load_problems(query: FailuresQuery) -> Mapping[str, HeatCause]:
    """Return the rows of the table that the page counts by, in its order."""
    rows = load_classes() if query.is_first else load_causes().values()
    return {row.code: HeatCause(row.code, row.sentence) for row in rows}


def build_heat_map(query: FailuresQuery, counts: FailureCounts, stopping: Mapping[ModelKey, StoppingDesign]) -> HeatMap:
    """Return the heat map without a query of the database."""
    cells: dict[tuple[ModelKey, str], int] = Counter()
    totals, infra = Counter[str](), Counter[str]()
    for line in counts.failed:
        code, key = line.failure_class if query.is_first else line.cause, (line.provider, line.model)
        if is_counted(line, counts.models[key].left_out):
            cells[key, code] += line.count
        if is_counted(line, counts.omitted):
            totals[code] += line.count
            infra[code] += line.count if line.outcome == Trial.Outcome.INFRA else 0
    failed = Counter[ModelKey]()
    for (key, _), count in cells.items():
        failed[key] += count
    worst = sorted(failed, key=lambda key: (-failed[key], key))
    columns = tuple(_build_column(key, failed[key], counts, stopping) for key in worst[:MAX_MODELS])
    problems = load_problems(query)
    shown = [code for code in problems if any(code == found for _, found in cells)]
    rows = tuple(
        HeatRow(
            problems[code],
            totals[code],
            infra[code] == totals[code] > 0,
            build_trials_query(query, counts, code, without=counts.list_omitted_tokens(None)),
            tuple(_build_cell(query, counts, code, column, cells.get((column.key, code), 0)) for column in columns),
        )
        for code in shown
    )
    without = sum(1 for key in counts.tried if key not in failed)
    models, errors = len({*counts.tried, *failed}), infra.total()
    return HeatMap(columns, rows, len(worst) - len(columns), without, models, totals.total() - errors, errors)


def build_trials_query(
    query: FailuresQuery, counts: FailureCounts, code: str, *, model: ModelKey | None = None, **fields: Any
) -> str:
    """Return the query string that lists counted trials with this code, of all models or of one."""
    by_kind = not query.runs
    of_code: dict[str, Any] = (
        {"failure_class": code} if query.is_first else {"cause": code, "cause_version": counts.version}
    )
    provider, model_name = model or ("", "")
    narrowed = TrialFilter(
        run=query.run,
        runs=",".join(map(str, query.runs)) if len(query.runs) > 1 else "",
        demo="1" if query.scope == "demo" and by_kind else "",
        imported="1" if query.scope == "imported" and by_kind else "",
        chosen=replace(query.chosen, models=()) if model else query.chosen,
        provider=provider,
        model=model_name,
        **of_code,
        **fields,
    )
    return narrowed.query()


def _build_column(
    key: ModelKey, failed: int, counts: FailureCounts, stopping: Mapping[ModelKey, StoppingDesign]
) -> HeatColumn:
    behind = counts.models[key].behind
    versions = tuple(dict.fromkeys(f"{version.scenario} version {version.version}" for version in behind))
    tried = max(counts.tried.get(key, 0), failed)
    return HeatColumn(*key, failed, tried, stopping.get(key, FIXED_STOPPING), versions)


def _build_cell(
    query: FailuresQuery, counts: FailureCounts, code: str, column: HeatColumn, count: int
) -> HeatCell | None:
    if not count:
        return None
    rate = build_rate(count, column.tried, stopping=column.stopping)
    heat = round(100 * (count / column.tried) ** 0.5, 1)
    without = counts.list_omitted_tokens(column.key)
    link = build_trials_query(query, counts, code, model=column.key, without=without)
    return HeatCell(rate, heat, link)
