"""Published matrix: figures of the case study as published, and figures that Toolbench computes from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from django.db.models import Max

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.statistics.differences import Stratum, compute_difference
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import PublishedCell, PublishedRecommendation, PublishedSnapshot


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """Row of the published matrix.

    Attributes:
        position: number of the row in the publication.
        name: name of the model without its vendor.
        tool: success in tool scenarios.
        control: success in the control.
        scenarios: (scenario, number of failures), as far as they were published.
        categories: (category, number of failures), as far as they were published.
        unlisted: number of failures whose scenario was not published.
        timeouts: number of published timeouts.
        answered: success in tool scenarios, of the trials without a timeout.
        failures: the published failures in the words of the source; "-" if none were published.
        split: (scenario, success) of each tool scenario; the success is None if it is unknown.
        recommendation: the published recommendation for the model and profile; None without one.
        repeats_model: whether the row above has the same model.
    """

    position: int
    vendor: str
    model: str
    name: str
    profile: str
    tool: Rate
    control: Rate
    p95_ms: int
    not_applicable: bool
    scenarios: tuple[tuple[str, int], ...]
    categories: tuple[tuple[str, int], ...]
    unlisted: int
    timeouts: int
    answered: Rate
    failures: str
    split: tuple[tuple[str, Rate | None], ...]
    recommendation: PublishedRecommendation | None
    repeats_model: bool = False

    @property
    def key(self) -> str:
        """Return the row's name in URLs."""
        return f"p{self.position}"

    @property
    def dots(self) -> Mapping[str, int]:
        """Return the number of tool trials by outcome. Published timeouts count as infrastructure errors."""
        if self.not_applicable:
            return {"na": self.tool.n}
        return {"pass": self.tool.k, "fail": self.tool.n - self.tool.k - self.timeouts, "infra": self.timeouts}


@dataclass(frozen=True, slots=True)
class PublishedMatrix:
    """Published matrix.

    Attributes:
        published: month of the publication in ISO form.
        month: the same in words.
        trials: number of trials of each row in each scenario.
        overall: success in all scenarios, as published.
        tool: success in tool scenarios, as published.
        applicable: success in tool scenarios without the rows whose tools were off.
        control: success in the control, as published.
        scenarios: (scenario, success), the highest success first.
        clear: number of applicable rows whose interval lies above the target; 0 without a target.
        undecided: number of applicable rows whose interval contains the target; without a target, the number of all
            applicable rows.
        below: number of applicable rows whose interval lies below the target; 0 without a target.
        perfect: number of applicable rows in which every tool trial passed.
    """

    title: str
    source: str
    published: str
    month: str
    trials: int
    overall: Rate
    tool: Rate
    applicable: Rate
    control: Rate
    scenarios: tuple[tuple[str, Rate], ...]
    rows: tuple[PublishedRow, ...]
    recommendations: tuple[PublishedRecommendation, ...]
    clear: int
    undecided: int
    below: int
    perfect: int

    @property
    def best(self) -> PublishedRow | None:
        """Return the applicable row with the highest success, the first of several; None without one."""
        return max((row for row in self.rows if not row.not_applicable), key=lambda row: row.tool.axis, default=None)

    @property
    def indistinguishable_from_best(self) -> tuple[PublishedRow, ...]:
        """Return the applicable rows with fewer passes than the best row that do not differ significantly from it.

        The row with the most passes is first. Of several rows with equally many passes, only the last is considered.
        """
        best = self.best
        lower = {row.tool.k: row for row in self.rows if best and not row.not_applicable and row.tool.k < best.tool.k}
        return tuple(
            lower[k] for k in sorted(lower, reverse=True) if best and _is_indistinguishable(best.tool, lower[k].tool)
        )


def _is_indistinguishable(first: Rate, second: Rate) -> bool:
    difference = compute_difference([Stratum(first.k, first.n, second.k, second.n)])
    return difference is None or not difference.is_significant


_matrices: VersionCache[PublishedMatrix] = VersionCache(max_entries=4)


def get_published_matrix(target: int | None = None) -> PublishedMatrix | None:
    """Return the newest published matrix, or None if no snapshot is loaded.

    The function sends one query, and two more if the matrix is not cached. A cached matrix is used until a snapshot is
    loaded.

    Args:
        target: target of the rates in percent; None for no target.
    """
    snapshots = PublishedSnapshot.objects.annotate(
        newest_cell=Max("cells__pk"), newest_recommendation=Max("recommendations__pk")
    )
    snapshot = snapshots.order_by("-published", "pk").first()
    if snapshot is None:
        return None
    version = (snapshot.pk, snapshot.newest_cell, snapshot.newest_recommendation)
    return _matrices.get(version, target, lambda: _build_matrix(snapshot, target))


def _build_matrix(snapshot: PublishedSnapshot, target: int | None) -> PublishedMatrix:
    recommendations = tuple(snapshot.recommendations.all())
    rows = _order_rows(_build_row(cell, snapshot, recommendations, target) for cell in snapshot.cells.all())
    counted = [row for row in rows if not row.not_applicable]
    statuses = [row.tool.target_status for row in counted]
    return PublishedMatrix(
        title=snapshot.title,
        source=snapshot.source,
        published=snapshot.published,
        month=_format_month(snapshot.published),
        trials=snapshot.trials,
        overall=_build_total_rate(snapshot, "overall", target),
        tool=_build_total_rate(snapshot, "tool", target),
        applicable=build_rate(sum(row.tool.k for row in counted), sum(row.tool.n for row in counted), target=target),
        control=_build_total_rate(snapshot, "control", target),
        scenarios=_list_scenario_rates(snapshot, target),
        rows=_mark_repeated_models(rows),
        recommendations=recommendations,
        clear=statuses.count("clears"),
        undecided=statuses.count("open"),
        below=statuses.count("below"),
        perfect=sum(row.tool.k == row.tool.n for row in counted),
    )


def _order_rows(rows: Iterable[PublishedRow]) -> tuple[PublishedRow, ...]:
    """Return the rows with the models in the order of the publication, and the profile `default` of a model first."""
    rows_by_model: dict[str, list[PublishedRow]] = {}
    for row in rows:
        rows_by_model.setdefault(row.model, []).append(row)
    return tuple(
        row
        for model_rows in rows_by_model.values()
        for row in sorted(model_rows, key=lambda row: row.profile != "default")
    )


def _mark_repeated_models(rows: tuple[PublishedRow, ...]) -> tuple[PublishedRow, ...]:
    """Set `repeats_model` in each row whose previous row has the same model."""
    previous_models = ("", *(row.model for row in rows))
    return tuple(
        replace(row, repeats_model=row.model == model) for row, model in zip(rows, previous_models, strict=False)
    )


def _build_total_rate(snapshot: PublishedSnapshot, name: str, target: int | None) -> Rate:
    ok, runs = snapshot.totals.get(name) or (0, 0)
    return build_rate(ok, runs, target=target)


def _list_scenario_rates(snapshot: PublishedSnapshot, target: int | None) -> tuple[tuple[str, Rate], ...]:
    """Return (scenario, rate) pairs, the highest rate first.

    They are sorted because the JSON column does not keep the order of the source.
    """
    rates = [(slug, build_rate(ok, runs, target=target)) for slug, (ok, runs) in snapshot.scenarios.items()]
    return tuple(sorted(rates, key=lambda pair: (-pair[1].axis, pair[0])))


def _build_row(
    cell: PublishedCell,
    snapshot: PublishedSnapshot,
    recommendations: tuple[PublishedRecommendation, ...],
    target: int | None,
) -> PublishedRow:
    counts = [(failure["name"], failure["count"]) for failure in cell.failures]
    # The source lists scenarios in lower case and categories in upper case in one column.
    scenarios = tuple(pair for pair in counts if pair[0].islower())
    categories = tuple(pair for pair in counts if not pair[0].islower())
    unlisted = cell.tool_runs - cell.tool_ok - sum(count for _, count in scenarios)
    timeouts = dict(categories).get("TIMEOUT", 0)
    vendor, _, name = cell.model.rpartition("/")
    return PublishedRow(
        position=cell.position,
        vendor=vendor,
        model=cell.model,
        name=name.partition(":")[0],
        profile=cell.profile,
        tool=build_rate(cell.tool_ok, cell.tool_runs, target=target),
        control=build_rate(cell.control_ok, cell.control_runs, target=target),
        p95_ms=cell.p95_ms,
        not_applicable=cell.not_applicable,
        scenarios=scenarios,
        categories=categories,
        unlisted=unlisted,
        timeouts=timeouts,
        answered=build_rate(cell.tool_ok, cell.tool_runs - timeouts, target=target),
        failures="; ".join(f"{name} x{count}" for name, count in counts) or "-",
        split=_split_by_scenario(dict(scenarios), unlisted, snapshot, target),
        recommendation=next(
            (
                recommendation
                for recommendation in recommendations
                if (recommendation.model, recommendation.profile) == (cell.model, cell.profile)
            ),
            None,
        ),
    )


def _split_by_scenario(
    failures: dict[str, int], unlisted: int, snapshot: PublishedSnapshot, target: int | None
) -> tuple[tuple[str, Rate | None], ...]:
    """Return (scenario, rate) pairs of a row's tool scenarios, sorted by scenario; unknown rates are None.

    The rate of a scenario without a published failure is known only if each failure was published with its scenario:
    then all trials passed.

    Args:
        failures: published number of failures by scenario.
        unlisted: number of failures whose scenario was not published.
        snapshot: the publication.
        target: target of the rates in percent; None for no target.
    """
    trials = snapshot.trials
    names = sorted(name for name in snapshot.scenarios if name != CONTROL_SCENARIO)
    rates = {name: build_rate(trials - failures.get(name, 0), trials, target=target) for name in names}
    return tuple((name, rates[name] if name in failures or not unlisted else None) for name in names)


def _format_month(published: str) -> str:
    """Return a month such as `2026-02` as `February 2026`; return any other text unchanged."""
    try:
        return f"{date.fromisoformat(published + '-01'):%B %Y}"
    except ValueError:
        return published
