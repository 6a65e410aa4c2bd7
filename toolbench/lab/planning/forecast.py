"""Estimates of requests, tokens, cost and time of planned trials, from earlier trials.

Each estimate is a range with its source. A figure that none of the earlier trials shows is unknown, not 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import connection

from toolbench.evals.prices import Price
from toolbench.lab.metrics.values import Figure
from toolbench.lab.paid_requests import FREE_KINDS
from toolbench.lab.planning.earlier_cells import PlannedTrials, SimilarCells, find_similar_cells
from toolbench.lab.sql import load_statement

ESTIMATED_FIGURES = ("requests", "input_tokens", "output_tokens", "cost", "duration_ms")
_COMPUTE_SAMPLES = load_statement("planning/cell_samples")


@dataclass(frozen=True, slots=True)
class RemainingLimits:
    """Limits for the planned trials; None for no limit.

    Attributes:
        requests: number of requests that may still be sent.
        tokens: number of tokens that may still be used.
        jobs: concurrency limit of the run per provider.
    """

    requests: int | None = None
    tokens: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated ranges; None if a figure is unknown.

    Attributes:
        tokens: input and output tokens together.
        cost: dollars.
        seconds: time of the slowest provider, with as many concurrent trials as the limits allow.
        unpriced: names of models without a price, which `cost` does not include.
        sources: the earlier trials and prices that the ranges are based on, in words.
        capped: whether a limit reduces the ranges.
        cells: number of planned cells.
        unseen: number of cells without similar earlier trials. `requests` includes their minimum and maximum; tokens,
            cost and time do not include them.
    """

    requests: Figure | None
    tokens: Figure | None
    cost: Figure | None
    seconds: Figure | None
    unpriced: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    capped: bool = False
    cells: int = 0
    unseen: int = 0


class CellSample(NamedTuple):
    """Mean and variance of one figure over `n` earlier trials of one cell."""

    n: int
    mean: float
    variance: float


@dataclass(slots=True)
class _RangeSum:
    """Sum of ranges: the sum of their lower ends and the sum of their upper ends."""

    low: float = 0.0
    high: float = 0.0

    def add(self, low: float, high: float) -> None:
        """Add a range."""
        self.low += low
        self.high += high


@dataclass(slots=True)
class _EstimateTotals:
    """Sums over planned trials.

    Attributes:
        figures: range sums by name of the figure.
        busy_ms: range sums of the durations, by provider id.
        trials: maximum number of trials, by provider id.
        unpriced: names of models without a price, as keys, in order.
        prices: origins of the prices that were used, as keys, in order.
    """

    figures: dict[str, _RangeSum] = field(default_factory=lambda: defaultdict(_RangeSum))
    busy_ms: dict[int, _RangeSum] = field(default_factory=lambda: defaultdict(_RangeSum))
    trials: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    unpriced: dict[str, None] = field(default_factory=dict)
    prices: dict[str, None] = field(default_factory=dict)


def estimate_trials(planned: Sequence[PlannedTrials], limits: RemainingLimits) -> Estimate | None:
    """Estimate planned trials, with at most three queries.

    Returns:
        The estimate; None if no earlier trials are similar, or if a cell without similar trials has unknown requests.
    """
    similar_cells = find_similar_cells(planned)
    pairs = list(zip(planned, similar_cells, strict=True))
    unseen = [trials for trials, similar in pairs if similar is None]
    if not any(similar_cells) or not all(trials.requests for trials in unseen):
        return None
    samples = _get_samples({cell for similar in similar_cells if similar for cell in (*similar.cells, *similar.others)})
    totals = _EstimateTotals()
    for trials, similar in pairs:
        if similar is not None:
            _add_trials(totals, trials, _list_samples(similar, samples))
        elif trials.requests is not None:
            min_requests, max_requests = trials.requests
            totals.figures["requests"].add(trials.min_trials * min_requests, trials.max_trials * max_requests)
    seen = [trials for trials, similar in pairs if similar is not None]
    estimate = _apply_limits(totals, seen, limits, _describe_sources(similar_cells, totals))
    return replace(estimate, cells=len(planned), unseen=len(unseen))


def estimate_range(samples: Sequence[CellSample], min_trials: int, max_trials: int) -> tuple[float, float]:
    """Return the range of the sum of a figure over `min_trials` to `max_trials` further trials.

    Its lower end is the expected sum of `min_trials` minus two standard errors, at least 0; its upper end is that of
    `max_trials` plus two standard errors. The errors include the variance of the further trials, of the observed mean
    and between cells.

    Args:
        samples: samples of the figure, at least one.
        min_trials: minimum number of further trials.
        max_trials: maximum number of further trials.
    """
    n, mean_sum, variance_sum = 0, 0.0, 0.0
    for size, cell_mean, variance in samples:
        n += size
        mean_sum += size * cell_mean
        variance_sum += size * variance
    mean, within = mean_sum / n, variance_sum / n
    between = sum([(sample.mean - mean) ** 2 for sample in samples]) / max(1, len(samples) - 1)

    def compute_margin(trials: int) -> float:
        return 2 * float((trials * within + trials**2 * (within / n + between)) ** 0.5)

    low = max(0.0, min_trials * mean - compute_margin(min_trials))
    return low, max_trials * mean + compute_margin(max_trials)


def _get_samples(cell_ids: Iterable[int]) -> Mapping[int, Mapping[str, CellSample]]:
    """Return samples by cell id and name of the figure, without figures that no trial of the cell has."""
    with connection.cursor() as cursor:
        cursor.execute(_COMPUTE_SAMPLES, [list(cell_ids)])
        return {cell_id: _read_samples(figures) for cell_id, *figures in cursor}


def _read_samples(figures: Sequence[Any]) -> dict[str, CellSample]:
    """Return the samples by figure; `figures` are count, mean and variance of each of ESTIMATED_FIGURES."""
    triples = zip(ESTIMATED_FIGURES, figures[::3], figures[1::3], figures[2::3], strict=True)
    return {name: CellSample(n, mean, variance) for name, n, mean, variance in triples if n}


def _list_samples(
    similar: SimilarCells, samples: Mapping[int, Mapping[str, CellSample]]
) -> list[Mapping[str, CellSample]]:
    """Return the samples of each similar cell, by figure; without the cost for cells that are only in `others`."""
    others = (samples[cell] for cell in similar.others if cell in samples and cell not in similar.cells)
    without_cost = ({name: sample for name, sample in cell.items() if name != "cost"} for cell in others)
    return [*(samples[cell] for cell in similar.cells if cell in samples), *without_cost]


def _add_trials(
    totals: _EstimateTotals, trials: PlannedTrials, cell_samples: Sequence[Mapping[str, CellSample]]
) -> None:
    """Add the ranges of planned trials, computed from the samples of similar cells, to the totals."""
    ranges = {
        name: estimate_range(samples, trials.min_trials, trials.max_trials)
        for name in ESTIMATED_FIGURES
        if (samples := [by_figure[name] for by_figure in cell_samples if name in by_figure])
    }
    if "requests" in ranges:
        low, high = ranges["requests"]
        ranges["requests"] = (max(low, trials.min_trials), max(high, trials.max_trials))  # a trial sends at least one
    for name in ("requests", "input_tokens", "output_tokens"):
        totals.figures[name].add(*ranges.get(name, (0.0, 0.0)))
    totals.busy_ms[trials.provider].add(*ranges.get("duration_ms", (0.0, 0.0)))
    totals.trials[trials.provider] += trials.max_trials
    if trials.kind in FREE_KINDS and (trials.price is None or trials.price.is_zero):
        return
    if "cost" in ranges:
        totals.figures["cost"].add(*ranges["cost"])
    elif trials.price and ranges.get("input_tokens", (0, 0))[1]:
        totals.figures["cost"].add(*_compute_cost_range(trials.price, ranges))
        if not trials.price.is_zero:
            totals.prices[trials.price.origin] = None
    elif trials.may_cost:
        totals.unpriced[trials.model_name] = None


def _compute_cost_range(price: Price, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    ends = zip(ranges["input_tokens"], ranges["output_tokens"], strict=True)
    low, high = (price.compute_cost(input_tokens, output_tokens) for input_tokens, output_tokens in ends)
    return low, high


def _apply_limits(
    totals: _EstimateTotals, planned: Sequence[PlannedTrials], limits: RemainingLimits, sources: tuple[str, ...]
) -> Estimate:
    """Build the estimate, with upper ends that the limits allow.

    If a limit is below the upper end of its figure, the upper ends of all figures are reduced by the same factor. A
    lower end changes only if it would be above the upper end.
    """
    sums = totals.figures
    tokens = _RangeSum()
    for name in ("input_tokens", "output_tokens"):
        tokens.add(sums[name].low, sums[name].high)
    factor = min(1.0, _compute_share(limits.requests, sums["requests"]), _compute_share(limits.tokens, tokens))
    seconds = _compute_seconds(totals, planned, limits)
    is_free = not any(trials.may_cost for trials in planned)
    return Estimate(
        requests=_build_figure(sums["requests"], factor, ""),
        tokens=_build_figure(tokens, factor, "tokens") if tokens.high else None,
        cost=_build_figure(sums["cost"], factor, "dollars") if sums["cost"].high or is_free else None,
        seconds=_build_figure(seconds, factor, "s") if seconds.high else None,
        unpriced=tuple(totals.unpriced),
        sources=sources,
        capped=factor < 1,
    )


def _compute_share(limit: int | None, total: _RangeSum) -> float:
    """Return the limit divided by the upper end of the range sum; the quotient may be above 1.

    Returns:
        1 without a limit or if the upper end is 0.
    """
    return 1.0 if limit is None or not total.high else limit / total.high


def _compute_seconds(totals: _EstimateTotals, planned: Sequence[PlannedTrials], limits: RemainingLimits) -> _RangeSum:
    """Return the seconds of the slowest provider, with as many concurrent trials as it and the run allow."""
    slowest = _RangeSum()
    for trials in planned:
        concurrency = max(
            1, min(trials.max_concurrency, limits.jobs or trials.max_concurrency, totals.trials[trials.provider])
        )
        busy_ms = totals.busy_ms[trials.provider]
        low, high = busy_ms.low / concurrency / 1000, busy_ms.high / concurrency / 1000
        slowest = _RangeSum(max(slowest.low, low), max(slowest.high, high))
    return slowest


def _build_figure(total: _RangeSum, factor: float, unit: str) -> Figure:
    return Figure(min(total.low, factor * total.high), factor * total.high, unit)


def _describe_sources(similar_cells: Sequence[SimilarCells | None], totals: _EstimateTotals) -> tuple[str, ...]:
    counts: dict[str, int] = defaultdict(int)
    for similar in similar_cells:
        if similar is not None:
            counts[similar.description] += 1
    sources = (f"{count} cell{'' if count == 1 else 's'} from {kind}" for kind, count in counts.items())
    return (*sources, *(f"prices: {name}" for name in totals.prices))
