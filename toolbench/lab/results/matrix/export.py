"""Export of the matrix: the case study's seven columns by its rules, then the columns of Toolbench."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.statistics.rounding import format_rounded, round_half_up
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.export_table import ExportTable, Value
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.scenario_versions import build_exclusion
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import list_quantile_columns, list_quantile_values
from toolbench.lab.metrics.values import Figure, Metric, compute_metric
from toolbench.lab.models import Trial
from toolbench.lab.results.matrix.case_study import CASE_STUDY_COLUMNS, CaseStudyFigures
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.rows import ROW_KEY, MatrixRow
from toolbench.lab.results.matrix.table import Matrix, filter_matrix_cells, get_matrix
from toolbench.lab.results.published import PublishedMatrix, get_published_matrix

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
}  # figures whose columns are not called as their metrics are
FailureCounts = tuple[Counter[str], Counter[str]]  # by scenario, by category
BRIEF_METRICS = ("given", "delivered", "first", "structured", "schema", "parse", "p50", "p95", "tokens", "cost")
BRIEF_RETRY_METRICS = ("answers_429", "answers_5xx", "retried", "backoff")  # of the brief form too
COUNT_COLUMNS = ("infrastructure", "not_applicable", "cancelled", "distinct_answers", "added_by_hand", "interval")


def export_matrix(query: MatrixQuery) -> ExportTable:
    """Return the table of the page under `query`, which must have a scope."""
    return _export_published(query) if query.scope == "published" else _export_measured(query)


def _export_measured(query: MatrixQuery) -> ExportTable:
    """Return the measured matrix with six queries.

    p95_ms is the case study's: position floor(0.95 n) of all trials, controls included.
    """
    matrix = get_matrix(query)
    trials, identity = _filter_trials(matrix), _list_key_columns(query)
    slowest, failures = _read_nearest_rank_p95(trials, identity), _count_failures(trials, identity)
    columns = (*CASE_STUDY_COLUMNS, *SETTING_COLUMNS, *_list_columns(METRICS.values()), *COUNT_COLUMNS)
    rows = tuple(
        (
            *_build_case_study_values(row, slowest.get(_build_row_key(row)), failures[_build_row_key(row)]),
            *_build_further_values(row),
        )
        for row in matrix.rows
    )
    brief = (
        *CASE_STUDY_COLUMNS,
        *SETTING_COLUMNS,
        *_list_columns(METRICS[name] for name in (*BRIEF_METRICS, *BRIEF_RETRY_METRICS)),
        *COUNT_COLUMNS,
    )
    simulated = ("Simulated models with known success rates: nothing here was measured on a real model.",)
    notes = (
        "tool_ok counts by the case study’s rule, and by the task where it has none; infrastructure as failure. The "
        "columns after the seventh are ours.",
        "Intervals: Wilson 95 % unless the last column says otherwise. They apply to repeats of these scenarios only.",
        "Of a quantile of times the columns …_ms_value, …_ms_low and …_ms_high pool the tool scenarios: the order "
        "statistic with its distribution-free 95 % bounds, empty where a bound is open.",
        "Every metric is explained with its denominator and an example in docs/metrics.md.",
        *(simulated if any(row.simulated for row in matrix.rows) else ()),
        *matrix.warnings,
    )
    return ExportTable("Matrix, measured here", notes, columns, rows, brief)


def _build_row_key(row: MatrixRow) -> tuple[object, ...]:
    requested = {**row.settings, "stream": bool(row.settings["stream"])}
    split = () if row.prompt is None else (row.prompt,)
    return (row.provider, row.kind, row.model, row.profile, *requested.values(), *split)


def _build_case_study_values(row: MatrixRow, p95: float | None, failures: FailureCounts) -> tuple[Value, ...]:
    passed = _count_case_study_passes(scenario.tally for scenario in row.scenarios if not scenario.control)
    controls = _count_case_study_passes(
        scenario.tally for scenario in row.scenarios if scenario.scenario == CONTROL_SCENARIO
    )
    return (row.model, row.profile, *CaseStudyFigures(*passed, *controls, p95, *failures).list_values())


def _count_case_study_passes(scenarios: Iterable[Tally]) -> tuple[int, int]:
    """Return passed and tried trials by the case study's rule, or by the task where it has no rule for a scenario."""
    sums = tuple(scenarios)
    ok = sum(scenario.parity_passed if scenario.parity_judged else scenario.passed for scenario in sums)
    return ok, sum(scenario.tried for scenario in sums)


def _build_further_values(row: MatrixRow) -> tuple[Value, ...]:
    tally = row.tally
    return (
        row.provider,
        *row.settings.values(),
        row.simulated,
        row.prompt,
        " ".join(map(str, row.run_ids)),
        tally.done,
        " ".join(sorted(f"{scenario.scenario}@{scenario.version}" for scenario in row.scenarios)),
        *(value for metric in METRICS.values() for value in _list_metric_values(metric, row)),
        tally.infra,
        tally.not_applicable,
        tally.cancelled,
        tally.distinct,
        tally.added_by_hand,
        tally.delivered().interval,
    )


def _list_columns(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the column names: five for a rate, one for a figure, three more for a quantile."""
    return tuple(name for metric in metrics for name in _list_metric_columns(metric))


def _list_metric_columns(metric: Metric) -> tuple[str, ...]:
    if metric.rate:
        return tuple(f"{metric.name}_{part}" for part in ("ok", "of", "rate", "low", "high"))
    figure = (COLUMN_BY_METRIC.get(metric.name, metric.name),) if metric.figure else ()
    return (*figure, *(list_quantile_columns(metric.name) if metric.quantile else ()))


def _list_metric_values(metric: Metric, row: MatrixRow) -> tuple[Value, ...]:
    found = compute_metric(metric, row.counted)
    if metric.is_rate:
        return _list_rate_values(found.rate)
    figure = (_format_figure(found.figure),) if metric.figure else ()
    return (*figure, *(list_quantile_values(found.quantile) if metric.quantile else ()))


def _list_rate_values(rate: Rate | None) -> tuple[Value, ...]:
    if rate is None:
        return (None,) * 5
    if not rate.n:
        return (0, 0, None, None, None)
    share = round_half_up(rate.k / rate.n, 4)
    ends = (None, None) if rate.withheld else (round_half_up(rate.low, 4), round_half_up(rate.high, 4))
    return (rate.k, rate.n, share, *ends)


def _format_figure(figure: Figure | None) -> Value:
    """Return one number, or a range over the scenarios as text."""
    if figure is None:
        return None
    low, high = round_half_up(figure.low, 6), round_half_up(figure.high, 6)
    return low if low == high else f"{low:g}-{high:g}"


def _filter_trials(matrix: Matrix) -> QuerySet[Trial]:
    group = matrix.query.group or (matrix.scenario_groups[0] if matrix.scenario_groups else "")
    cells = filter_matrix_cells(matrix.query).filter(scenario_group__in=[group, "control"])
    trials = Trial.objects.filter(TRIED, cell__in=cells).order_by()
    identity = _list_key_columns(matrix.query)
    for row in matrix.rows:
        if row.trials.without:
            earlier = ~build_exclusion(row.trials.without)
            trials = trials.exclude(earlier & Q(**dict(zip(identity, _build_row_key(row), strict=True))))
    return trials


def _list_key_columns(query: MatrixQuery) -> tuple[str, ...]:
    split = ("cell__prompt_version",) if query.prompt == SPLIT_BY_PROMPT else ()
    return (*(name if name == "instance_kind" else f"config__{name}" for name in ROW_KEY), *split)


def _read_nearest_rank_p95(trials: QuerySet[Trial], identity: tuple[str, ...]) -> Mapping[tuple[object, ...], float]:
    placed = trials.filter(duration_ms__isnull=False).annotate(
        place=Window(RowNumber(), partition_by=identity, order_by="duration_ms"),
        of=Window(Count("pk"), partition_by=identity),
    )
    at = placed.filter(place=F("of") * 95 / 100 + 1).values_list(*identity, "duration_ms")
    return {tuple(row[:-1]): row[-1] for row in at}


def _count_failures(trials: QuerySet[Trial], identity: tuple[str, ...]) -> Mapping[tuple[object, ...], FailureCounts]:
    """Return failed trials of tool scenarios by scenario and by the case study's category, for each row."""
    failed = trials.exclude(outcome=Trial.Outcome.PASS).filter(cell__control=False)
    counted = failed.values_list(*identity, "scenario", "category").annotate(times=Count("pk"))
    found: dict[tuple[object, ...], FailureCounts] = defaultdict(lambda: (Counter(), Counter()))
    for *key, scenario, category, times in counted:
        scenarios, categories = found[tuple(key)]
        scenarios[scenario] += times
        categories[category or "EXCEPTION"] += times
    return found


def _export_published(query: MatrixQuery) -> ExportTable:
    published = get_published_matrix(query.target)
    columns = (*CASE_STUDY_COLUMNS, "published", "not_applicable", "low", "high", "answered_ok", "answered_of")
    if published is None:
        return ExportTable("Published matrix", ("The published figures are not loaded.",), columns, ())
    notes = (
        f"Published {published.published}, not measured here: {published.source}.",
        f"As published {published.tool.k}/{published.tool.n}, without rows whose tools were off "
        f"{published.applicable.k}/{published.applicable.n}.",
        "Only the most frequent failures were published: what is not listed is unknown, not zero.",
    )
    return ExportTable("Published matrix", notes, columns, _build_published_rows(published, query.q.lower()))


def _build_published_rows(published: PublishedMatrix, metric_name: str) -> tuple[tuple[Value, ...], ...]:
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
        if metric_name in row.model.lower()
    )
