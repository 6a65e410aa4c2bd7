"""The published matrix: figures as published and under the rules of Toolbench, none of them measured here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.evals.statistics.differences import Stratum, compute_difference
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import PublishedCell, PublishedRecommendation, PublishedSnapshot


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of the published matrix.

    Attributes:
        answered: success without published timeouts.
        failures: the published failures in the words of the source.
        unlisted: failures in scenarios that were not published.
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
    failures: str  # the published column's words
    split: tuple[tuple[str, Rate | None], ...]  # by scenario; None: not published
    recommendation: PublishedRecommendation | None
    again: bool = False

    @property
    def key(self) -> str:
        """Return the name of the row in the URL."""
        return f"p{self.position}"

    @property
    def dots(self) -> Mapping[str, int]:
        """Return the number of trials by outcome. Published timeouts count as infrastructure errors."""
        if self.not_applicable:
            return {"na": self.tool.n}
        return {"pass": self.tool.k, "fail": self.tool.n - self.tool.k - self.timeouts, "infra": self.timeouts}


@dataclass(frozen=True, slots=True)
class PublishedMatrix:
    """The published matrix.

    Attributes:
        tool: success as published.
        ours: success without the cells whose tools are off.
    """

    slug: str
    title: str
    source: str
    published: str
    month: str
    note: str
    trials: int
    overall: Rate
    tool: Rate
    ours: Rate
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
        """Return the applicable row with the highest success, or None."""
        return max((row for row in self.rows if not row.not_applicable), key=lambda row: row.tool.axis, default=None)

    @property
    def indistinguishable_from_best(self) -> tuple[PublishedRow, ...]:
        """Return a row for each lower count without a significant difference from the best, the highest first."""
        best = self.best
        lower = {row.tool.k: row for row in self.rows if best and not row.not_applicable and row.tool.k < best.tool.k}
        return tuple(
            lower[k] for k in sorted(lower, reverse=True) if best and _is_indistinguishable(best.tool, lower[k].tool)
        )


def _is_indistinguishable(first: Rate, second: Rate) -> bool:
    found = compute_difference([Stratum(first.k, first.n, second.k, second.n)])
    return found is None or not found.is_significant


def get_published_matrix(target: int | None = None) -> PublishedMatrix | None:
    """Return the newest published matrix with three queries; None if no snapshot is loaded.

    Args:
        target: success in percent that rates are judged against; None for no target.
    """
    snapshot = PublishedSnapshot.objects.order_by("-published", "pk").first()
    if snapshot is None:
        return None
    recommendations = tuple(snapshot.recommendations.all())
    rows = tuple(_build_row(cell, snapshot, recommendations, target) for cell in snapshot.cells.all())
    counted = [row for row in rows if not row.not_applicable]
    against = [row.tool.target_status for row in counted]
    return PublishedMatrix(
        slug=snapshot.slug,
        title=snapshot.title,
        source=snapshot.source,
        published=snapshot.published,
        month=_format_month(snapshot.published),
        note=snapshot.note,
        trials=snapshot.trials,
        overall=_build_total_rate(snapshot, "overall", target),
        tool=_build_total_rate(snapshot, "tool", target),
        ours=build_rate(sum(row.tool.k for row in counted), sum(row.tool.n for row in counted), target=target),
        control=_build_total_rate(snapshot, "control", target),
        scenarios=_list_scenario_rates(snapshot, target),
        rows=_mark_repeated_models(rows),
        recommendations=recommendations,
        clear=against.count("clears"),
        undecided=against.count("open"),
        below=against.count("below"),
        perfect=sum(row.tool.k == row.tool.n for row in counted),
    )


def _mark_repeated_models(rows: tuple[PublishedRow, ...]) -> tuple[PublishedRow, ...]:
    """Mark each row whose predecessor has the same model."""
    above = ("", *(row.model for row in rows))
    return tuple(replace(row, again=row.model == model) for row, model in zip(rows, above, strict=False))


def _build_total_rate(snapshot: PublishedSnapshot, name: str, target: int | None) -> Rate:
    ok, runs = snapshot.totals.get(name) or (0, 0)
    return build_rate(ok, runs, target=target)


def _list_scenario_rates(snapshot: PublishedSnapshot, target: int | None) -> tuple[tuple[str, Rate], ...]:
    """Return the rates by scenario, the highest first. The database does not keep their order."""
    rates = [(slug, build_rate(ok, runs, target=target)) for slug, (ok, runs) in snapshot.scenarios.items()]
    return tuple(sorted(rates, key=lambda pair: (-pair[1].axis, pair[0])))


def _build_row(
    cell: PublishedCell,
    snapshot: PublishedSnapshot,
    recommendations: tuple[PublishedRecommendation, ...],
    target: int | None,
) -> PublishedRow:
    named = [(row["name"], row["count"]) for row in cell.failures]
    scenarios = tuple(pair for pair in named if pair[0].islower())
    categories = tuple(pair for pair in named if not pair[0].islower())
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
        failures="; ".join(f"{name} x{count}" for name, count in named) or "-",
        split=_split_by_scenario(dict(scenarios), unlisted, snapshot, target),
        recommendation=next((r for r in recommendations if (r.model, r.profile) == (cell.model, cell.profile)), None),
    )


def _split_by_scenario(
    failed: dict[str, int], unlisted: int, snapshot: PublishedSnapshot, target: int | None
) -> tuple[tuple[str, Rate | None], ...]:
    """Return the rates by scenario, None where the published part does not tell.

    A scenario that is not named has passed every time only if all failures are named.
    """
    trials = snapshot.trials
    names = sorted(name for name in snapshot.scenarios if name != CONTROL_SCENARIO)
    known = {name: build_rate(trials - failed.get(name, 0), trials, target=target) for name in names}
    return tuple((name, known[name] if name in failed or not unlisted else None) for name in names)


def _format_month(published: str) -> str:
    """Return `2026-02` as February 2026, and anything else unchanged."""
    try:
        return f"{date.fromisoformat(published + '-01'):%B %Y}"
    except ValueError:
        return published
