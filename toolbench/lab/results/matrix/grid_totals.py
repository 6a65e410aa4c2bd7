"""Totals of the grid over rows, which add up only the newest version of each scenario."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.values import Metric, MetricInput, MetricValue, compute_metric
from toolbench.lab.results.matrix.rows import MatrixRow, ScenarioSums, build_metric_input, select_trials
from toolbench.lab.results.matrix.table import Matrix, NewestVersions, find_newest_versions

NO_TALLY = Tally()
KindAndSums = tuple[str, ScenarioSums]  # kind of instance, and sums of one scenario with it


def choose_metric(metric: Metric, *, is_control: bool) -> Metric:
    """Return the metric of a cell or a column.

    Cells and columns of a control show answered success in place of every judged metric.
    """
    return METRICS["given"] if is_control and metric.judged else metric


def group_by_scenario(rows: Iterable[MatrixRow]) -> Mapping[str, Sequence[KindAndSums]]:
    """Return the kind of instance and the sums of each scenario of these rows, by scenario."""
    pairs_by_slug: dict[str, list[KindAndSums]] = defaultdict(list)
    for row in rows:
        for sums in row.scenarios:
            pairs_by_slug[sums.scenario].append((row.settings["instance_kind"], sums))
    return pairs_by_slug


def compute_scenario_total(
    matrix: Matrix, newest: NewestVersions, pairs: Sequence[KindAndSums], *, is_control: bool
) -> MetricValue | None:
    """Return the pooled rate of the newest version of a scenario.

    Args:
        matrix: the matrix.
        newest: the newest version of each scenario, from `find_newest_versions`.
        pairs: the kinds of instance and the sums of the scenario.
        is_control: whether the scenario is a control.

    Returns:
        None if the metric is no rate, since other values cannot be pooled, or if there are drawn instances beside the
        published wording, which are different tasks.
    """
    if not matrix.metric.is_rate or _has_several_kinds(pairs):
        return None
    tally = _add_newest(newest, pairs)
    metric_input = MetricInput(tally, tally if is_control else NO_TALLY, (tally,))
    shown_metric = choose_metric(matrix.metric, is_control=is_control)
    return compute_metric(shown_metric, metric_input, target=None if is_control else matrix.query.target)


def compute_row_total(matrix: Matrix, newest: NewestVersions, rows: Iterable[MatrixRow]) -> MetricValue | None:
    """Return the pooled rate of rows over the newest versions of their scenarios.

    The total covers tool scenarios, controls or both, depending on the metric.

    Returns:
        None in the same cases as `compute_scenario_total`.
    """
    metric, tools, controls = matrix.metric, list[KindAndSums](), list[KindAndSums]()
    for row in rows:
        for sums in row.scenarios:
            (controls if sums.control else tools).append((row.settings["instance_kind"], sums))
    counted = [*tools, *controls] if metric.with_control else controls if metric.of_control else tools
    if not metric.is_rate or _has_several_kinds(counted):
        return None
    metric_input = MetricInput(_add_newest(newest, tools), _add_newest(newest, controls))
    return compute_metric(metric, metric_input, target=matrix.query.target)


def _has_several_kinds(pairs: Iterable[KindAndSums]) -> bool:
    return len({kind for kind, _ in pairs}) > 1


def _add_newest(newest: NewestVersions, pairs: Iterable[KindAndSums]) -> Tally:
    return add_tallies(
        sums.tally for kind, sums in pairs if sums.version == newest.get((kind, sums.scenario), sums.version)
    )


def pool_profiles(rows: Sequence[MatrixRow], *, of_control: bool) -> MatrixRow:
    """Return one row for rows that differ only in their profile.

    Scenarios, counts and times are pooled, of each scenario only the newest version with finished trials. The remarks
    on versions, and the configurations, are those of all rows. The filter of the trials names no profile; everything
    else is that of the first row.

    Args:
        rows: at least one row; a single one is returned unchanged.
        of_control: True if the filter has to select the trials of controls, False for those of tool scenarios.
    """
    if len(rows) == 1:
        return rows[0]
    newest, kind = find_newest_versions(rows), rows[0].settings["instance_kind"]
    parts = [sums for row in rows for sums in row.scenarios]
    kept = tuple(sums for sums in parts if sums.version == newest.get((kind, sums.scenario), sums.version))
    tokens = {sums.token for sums in parts}.union(*(row.omitted.split(",") for row in rows))
    kept_names = {f"{sums.scenario} version {sums.version}" for sums in kept}
    versions = {version for row in rows for version in row.versions} & {sums.version for sums in kept}
    metric_input = build_metric_input(kept)
    pooled_row = replace(
        rows[0],
        profile=f"{len(rows)} profiles",
        scenarios=kept,
        metric_input=metric_input,
        times=metric_input.pooled_times,
        config_ids=tuple(sorted({pk for row in rows for pk in row.config_ids})),
        omitted=",".join(sorted(tokens - {"", *(sums.token for sums in kept)})),
        trial_filter=replace(rows[0].trial_filter, profile=""),
        versions=tuple(sorted(versions)),
        outdated=tuple(dict.fromkeys(name for row in rows for name in row.outdated if name in kept_names)),
    )
    return select_trials(pooled_row, of_control=of_control)
