"""Export of the matrix: the case study's seven columns by its rules, then the columns of Toolbench."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from django.db import connection

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.statistics import compute_nearest_rank_percentile
from toolbench.evals.statistics.rounding import format_rounded, round_half_up
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.export_table import ExportTable, Value
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import list_quantile_columns, list_quantile_values, merge_times
from toolbench.lab.metrics.values import Figure, Metric, compute_metric
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.results.matrix.case_study import CASE_STUDY_COLUMNS, CaseStudyFigures
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.rows import MatrixRow
from toolbench.lab.results.matrix.table import Matrix, get_matrix
from toolbench.lab.results.published import PublishedMatrix, get_published_matrix
from toolbench.lab.results.table_layout import USUAL_LAYOUT
from toolbench.lab.sql import load_statement

SETTING_COLUMNS = (
    "provider",
    "strategy",
    "method",
    "examples",
    "tool_use_mode",
    "instances",
    "answers",
    "simulated",
    "prompt_version",
    "runs",
    "trials",
    "scenario_versions",
)
COLUMN_BY_METRIC = {
    "p50": "p50_ms",
    "p95": "p95_ms_from_60",
    "first_token": "first_token_ms",
    "tokens": "tokens_per_trial",
    "cached": "cached_tokens_per_trial",
    "reasoning": "reasoning_tokens_per_trial",
    "cost": "cost_per_success",
    "backoff": "backoff_ms",
}  # columns of figures that are not named as their metrics
# Metrics of the Markdown table; tables in other formats have all metrics.
BRIEF_METRICS = ("given", "delivered", "first", "structured", "schema", "parse", "p50", "p95", "tokens", "cost")
BRIEF_RETRY_METRICS = ("answers_429", "answers_5xx", "retried", "backoff")
COUNT_COLUMNS = ("infrastructure", "not_applicable", "cancelled", "distinct_answers", "added_by_hand", "interval")
_SELECT_FAILURES = load_statement("results/matrix/failures")


@dataclass(frozen=True, slots=True)
class Failures:
    """Counts and times of the trials of a row that failed or had an infrastructure error.

    Attributes:
        scenarios: number of trials of tool scenarios by scenario.
        categories: number of the same trials by the case study's category.
        unanswered_ms: durations of trials without an answer, controls included; cells store the other durations.
    """

    scenarios: Counter[str] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    unanswered_ms: list[float] = field(default_factory=list)

    def add(self, scenario: str, category: str, count: int, unanswered_ms: Iterable[float]) -> None:
        """Add the trials of one scenario and category.

        Args:
            scenario: slug of the scenario.
            category: the case study's category; "" stands for its category of exceptions.
            count: number of trials; 0 for a control, of which only durations are added.
            unanswered_ms: durations of the trials without an answer.
        """
        self.unanswered_ms.extend(unanswered_ms)
        if count:
            self.scenarios[scenario] += count
            self.categories[category or "EXCEPTION"] += count


def export_matrix(query: MatrixQuery) -> ExportTable:
    """Return the table of the matrix page for a query; `query.scope` must not be empty."""
    return _export_published(query) if query.scope == "published" else export_measured(get_matrix(query))


_tables: VersionCache[ExportTable] = VersionCache(max_entries=8)


def export_measured(matrix: Matrix) -> ExportTable:
    """Return the table of a measured matrix, with one query, or with none if the table is cached.

    The column p95_ms has the nearest-rank p95 of all trials, controls included, as in the case study. Therefore all
    failures and infrastructure errors of the rows are read, and the table is cached until the version of the matrix
    changes.
    """
    key = replace(matrix.query, layout=USUAL_LAYOUT)
    return _tables.get(matrix.version, key, lambda: _build_table(matrix))


def _build_table(matrix: Matrix) -> ExportTable:
    failures = _read_failures(matrix)
    columns = (*CASE_STUDY_COLUMNS, *SETTING_COLUMNS, *_list_columns(METRICS.values()), *COUNT_COLUMNS)
    rows = tuple(
        (
            *_build_case_study_values(row, failures[row.key]),
            *_build_further_values(row),
        )
        for row in matrix.rows
    )
    markdown_columns = (
        *CASE_STUDY_COLUMNS,
        *SETTING_COLUMNS,
        *_list_columns(METRICS[name] for name in (*BRIEF_METRICS, *BRIEF_RETRY_METRICS)),
        *COUNT_COLUMNS,
    )
    simulated_notes = ("Simulated models with known success rates: nothing here was measured on a real model.",)
    notes = (
        "tool_ok counts passes by the case study rule, or by outcome if a scenario has no such rule; infrastructure "
        "errors count as failures. Toolbench adds the columns after the seventh.",
        "Intervals: Wilson 95 % unless the last column says otherwise. They apply to repeats of these scenarios only.",
        "The columns …_ms_value, …_ms_low and …_ms_high are a quantile of the times in all tool scenarios with its "
        "distribution-free 95 % bounds; an open bound is empty.",
        "Every metric is explained with its denominator and an example in docs/metrics.md.",
        *(simulated_notes if any(row.simulated for row in matrix.rows) else ()),
        *matrix.warnings,
    )
    title = "Matrix, imported" if matrix.query.scope == "imported" else "Matrix, measured here"
    return ExportTable(title, notes, columns, rows, markdown_columns)


def _build_case_study_values(row: MatrixRow, failures: Failures) -> tuple[Value, ...]:
    tool_counts = _count_case_study_passes(scenario.tally for scenario in row.scenarios if not scenario.control)
    control_counts = _count_case_study_passes(
        scenario.tally for scenario in row.scenarios if scenario.scenario == CONTROL_SCENARIO
    )
    p95 = _compute_nearest_rank_p95(row, failures.unanswered_ms)
    figures = CaseStudyFigures(*tool_counts, *control_counts, p95, failures.scenarios, failures.categories)
    return (row.model, row.profile, *figures.list_values())


def _count_case_study_passes(scenario_tallies: Iterable[Tally]) -> tuple[int, int]:
    """Return how many trials passed and how many were tried.

    In a scenario that the case study rule does not judge, the trials with the outcome `pass` have passed.
    """
    tallies = tuple(scenario_tallies)
    passed = sum(tally.parity_passed if tally.parity_judged else tally.passed for tally in tallies)
    return passed, sum(tally.tried for tally in tallies)


def _build_further_values(row: MatrixRow) -> tuple[Value, ...]:
    tally = row.tally
    return (
        row.provider,
        *row.settings.values(),
        row.simulated,
        row.prompt,
        " ".join(map(str, row.run_ids)),
        tally.ended,
        " ".join(sorted(f"{scenario.scenario}@{scenario.version}" for scenario in row.scenarios)),
        *(value for metric in METRICS.values() for value in _list_metric_values(metric, row)),
        tally.infra,
        tally.not_applicable,
        tally.cancelled,
        tally.distinct,
        tally.added_by_hand,
        tally.compute_end_to_end_success().interval_name,
    )


def _list_columns(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the names of the columns: five for a rate, one for a figure, three more for a quantile."""
    return tuple(name for metric in metrics for name in _list_metric_columns(metric))


def _list_metric_columns(metric: Metric) -> tuple[str, ...]:
    if metric.rate:
        return tuple(f"{metric.name}_{part}" for part in ("ok", "of", "rate", "low", "high"))
    figure = (COLUMN_BY_METRIC.get(metric.name, metric.name),) if metric.figure else ()
    return (*figure, *(list_quantile_columns(metric.name) if metric.quantile else ()))


def _list_metric_values(metric: Metric, row: MatrixRow) -> tuple[Value, ...]:
    value = compute_metric(metric, row.metric_input)
    if metric.is_rate:
        return _list_rate_values(value.rate)
    figure = (_format_figure(value.figure),) if metric.figure else ()
    return (*figure, *(list_quantile_values(value.quantile) if metric.quantile else ()))


def _list_rate_values(rate: Rate | None) -> tuple[Value, ...]:
    """Return numerator, denominator, share, lower and upper bound; an unknown value is None."""
    if rate is None:
        return (None,) * 5
    if not rate.n:
        return (0, 0, None, None, None)
    share = round_half_up(rate.k / rate.n, 4)
    bounds = (None, None) if rate.withheld else (round_half_up(rate.low, 4), round_half_up(rate.high, 4))
    return (rate.k, rate.n, share, *bounds)


def _format_figure(figure: Figure | None) -> Value:
    """Return a figure as a number, or as a text such as "10-20" for a range; None if it is unknown."""
    if figure is None:
        return None
    low, high = round_half_up(figure.low, 6), round_half_up(figure.high, 6)
    return low if low == high else f"{low:g}-{high:g}"


def _read_failures(matrix: Matrix) -> Mapping[str, Failures]:
    """Return the failures of each row by the row's key, with one query; a row without failures has empty ones."""
    # Both arrays are sent as text: psycopg takes as long to adapt lists of thousands of ids as PostgreSQL to answer.
    configs = ",".join(str(pk) for row in matrix.rows for pk in row.config_ids)
    rows = ",".join(str(index) for index, row in enumerate(matrix.rows) for _ in row.config_ids)
    is_control_by_key = [{(part.scenario, part.version): part.control for part in row.scenarios} for row in matrix.rows]
    failures: dict[str, Failures] = defaultdict(Failures)
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_FAILURES, {"configs": f"{{{configs}}}", "rows": f"{{{rows}}}"})
        for index, scenario, version, category, count, times in cursor.fetchall():
            is_control = is_control_by_key[index].get((scenario, version))
            if is_control is not None:  # the row may count another version of the scenario
                failures[matrix.rows[index].key].add(scenario, category, 0 if is_control else count, times or ())
    return failures


def _compute_nearest_rank_p95(row: MatrixRow, unanswered_ms: list[float]) -> float | None:
    """Return the nearest-rank p95 of a row's durations in milliseconds; None without durations."""
    times = merge_times(scenario.times for scenario in row.scenarios).list_durations() + unanswered_ms
    return compute_nearest_rank_percentile(times, 95) if times else None


def _export_published(query: MatrixQuery) -> ExportTable:
    published = get_published_matrix(query.target)
    columns = (*CASE_STUDY_COLUMNS, "published", "not_applicable", "low", "high", "answered_ok", "answered_of")
    if published is None:
        return ExportTable("Published matrix", ("The published figures are not loaded.",), columns, ())
    notes = (
        f"Published {published.published}, not measured here: {published.source}",
        f"{published.tool.k} of {published.tool.n} tool trials passed, as published; "
        f"{published.applicable.k} of {published.applicable.n} without the rows whose tools were off.",
        "Only the most frequent failures were published. The numbers of other failures are unknown.",
    )
    return ExportTable("Published matrix", notes, columns, _build_published_rows(published, query.q.lower()))


def _build_published_rows(published: PublishedMatrix, name_part: str) -> tuple[tuple[Value, ...], ...]:
    """Return the rows whose model name contains `name_part`, which must be in lower case."""
    return tuple(
        (
            row.model,
            row.profile,
            f"{row.tool.k}/{row.tool.n}",
            f"{format_rounded(100 * row.tool.k / row.tool.n, 1)}%",
            f"{row.control.k}/{row.control.n}",
            row.p95_ms,
            row.failures,
            published.published,
            row.not_applicable,
            round_half_up(row.tool.low, 4),
            round_half_up(row.tool.high, 4),
            None if row.not_applicable else row.answered.k,
            None if row.not_applicable else row.answered.n,
        )
        for row in published.rows
        if name_part in row.model.lower()
    )
