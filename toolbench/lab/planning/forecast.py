"""Estimates of requests, tokens, cost and time from earlier trials, each as a range with its source.

What earlier trials do not show is unknown, never 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Avg, Count, QuerySet, Variance

from toolbench.evals.prices import Price, find_price
from toolbench.lab.confirmation import FREE_KINDS
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.values import Figure
from toolbench.lab.models import Trial
from toolbench.lab.planning.earlier_cells import PlannedTrials, SimilarCells, find_similar_cells

ESTIMATED_FIGURES = ("requests", "input_tokens", "output_tokens", "cost", "duration_ms")


@dataclass(frozen=True, slots=True)
class RemainingLimits:
    """The requests and tokens that are left; None for no limit. `jobs`: simultaneous trials at one provider."""

    requests: int | None = None
    tokens: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated ranges; None is unknown.

    Attributes:
        seconds: assumes that every provider works at its own limit.
        unpriced: models without a price; `cost` covers the others only.
        sources: what the ranges are based on, in words.
        unseen: cells without similar earlier trials, of all `cells`. Their requests are counted from the minimum to the
            maximum; tokens, cost and time cover the other cells only.
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


@dataclass(frozen=True, slots=True)
class CellSample:
    """Values of one figure in `n` earlier trials of one cell."""

    n: int
    mean: float
    variance: float


@dataclass(slots=True)
class _RangeSum:
    """Sum of ranges, as if all errors had the same sign."""

    low: float = 0.0
    high: float = 0.0

    def add(self, low: float, high: float) -> None:
        """Add a range."""
        self.low += low
        self.high += high


@dataclass(slots=True)
class _EstimateTotals:
    figures: dict[str, _RangeSum] = field(default_factory=lambda: defaultdict(_RangeSum))
    busy: dict[int, _RangeSum] = field(default_factory=lambda: defaultdict(_RangeSum))  # milliseconds by provider
    trials: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    unpriced: dict[str, None] = field(default_factory=dict)
    prices: dict[str, None] = field(default_factory=dict)


def estimate_trials(planned: Sequence[PlannedTrials], limits: RemainingLimits) -> Estimate | None:
    """Estimate planned trials, with four queries.

    Returns:
        None where no earlier trials are similar, or where the requests of a cell without similar trials are unknown.
    """
    found = find_similar_cells(planned)
    pairs = list(zip(planned, found, strict=True))
    unseen = [trials for trials, history in pairs if history is None]
    if not any(found) or not all(trials.requests for trials in unseen):
        return None
    samples = _get_samples(
        {cell for found_cells in found if found_cells for cell in (*found_cells.cells, *found_cells.others)}
    )
    totals = _EstimateTotals()
    for trials, history in pairs:
        if history is not None:
            _add_trials(totals, trials, _list_samples(history, samples))
        elif trials.requests is not None:
            totals.figures["requests"].add(trials.least * trials.requests[0], trials.most * trials.requests[1])
    known = [trials for trials, history in pairs if history is not None]
    estimate = _apply_limits(totals, known, limits, _describe_sources(found, totals))
    return replace(estimate, cells=len(planned), unseen=len(unseen))


def estimate_range(samples: Sequence[CellSample], least: int, most: int) -> tuple[float, float]:
    """Return the range of the sum over `least` to `most` further trials: the mean, minus and plus two standard errors.

    The errors are those of the further trials, of the observed mean, and of a cell that differs from the others.
    """
    n = sum(sample.n for sample in samples)
    mean = sum(sample.n * sample.mean for sample in samples) / n
    within = sum(sample.n * sample.variance for sample in samples) / n
    between = sum((sample.mean - mean) ** 2 for sample in samples) / max(1, len(samples) - 1)

    def off(trials: int) -> float:
        return 2 * float((trials * within + trials**2 * (within / n + between)) ** 0.5)

    return max(0.0, least * mean - off(least)), most * mean + off(most)


def _get_samples(cells: Iterable[int]) -> Mapping[int, Mapping[str, CellSample]]:
    """Return samples by cell and figure; a figure that no trial of the cell has is missing."""
    tried: QuerySet[Trial] = Trial.objects.filter(TRIED, cell_id__in=list(cells), state="done").order_by()
    numbers = {
        f"{name}_{aggregate.name}": aggregate(name)
        for name in ESTIMATED_FIGURES
        for aggregate in (Count, Avg, Variance)
    }
    lines: Any = tried.values("cell_id").annotate(**numbers)
    return {
        line["cell_id"]: {
            name: CellSample(line[f"{name}_Count"], line[f"{name}_Avg"], line[f"{name}_Variance"] or 0.0)
            for name in ESTIMATED_FIGURES
            if line[f"{name}_Count"]
        }
        for line in lines
    }


def _list_samples(
    history: SimilarCells, samples: Mapping[int, Mapping[str, CellSample]]
) -> list[Mapping[str, CellSample]]:
    """Return the samples of similar cells; the cost of another model is not used."""
    others = (samples[cell] for cell in history.others if cell in samples and cell not in history.cells)
    without_cost = ({name: sample for name, sample in cell.items() if name != "cost"} for cell in others)
    return [*(samples[cell] for cell in history.cells if cell in samples), *without_cost]


def _add_trials(totals: _EstimateTotals, trials: PlannedTrials, cells: Sequence[Mapping[str, CellSample]]) -> None:
    ranges = {
        name: estimate_range(having, trials.least, trials.most)
        for name in ESTIMATED_FIGURES
        if (having := [cell[name] for cell in cells if name in cell])
    }
    for name in ("requests", "input_tokens", "output_tokens"):
        totals.figures[name].add(*ranges.get(name, (0.0, 0.0)))
    totals.busy[trials.provider].add(*ranges.get("duration_ms", (0.0, 0.0)))
    totals.trials[trials.provider] += trials.most
    if trials.kind in FREE_KINDS:
        return
    if "cost" in ranges:
        totals.figures["cost"].add(*ranges["cost"])
    elif (price := trials.price or find_price(trials.template, trials.model_name)) and ranges.get(
        "input_tokens", (0, 0)
    )[1]:
        totals.figures["cost"].add(*_compute_cost_range(price, ranges))
        totals.prices[price.origin] = None
    elif trials.may_cost:
        totals.unpriced[trials.model_name] = None


def _compute_cost_range(price: Price, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    ends = zip(ranges["input_tokens"], ranges["output_tokens"], strict=True)
    low, high = (price.compute_cost(input_tokens, answered) for input_tokens, answered in ends)
    return low, high


def _apply_limits(
    totals: _EstimateTotals, planned: Sequence[PlannedTrials], limits: RemainingLimits, sources: tuple[str, ...]
) -> Estimate:
    """Reduce the estimate to what the limits allow; tokens, cost and time shrink with the requests."""
    sums = totals.figures
    tokens = _RangeSum()
    for name in ("input_tokens", "output_tokens"):
        tokens.add(sums[name].low, sums[name].high)
    part = min(1.0, _compute_share(limits.requests, sums["requests"]), _compute_share(limits.tokens, tokens))
    time = _compute_seconds(totals, planned, limits)
    free = not any(trials.may_cost for trials in planned)
    return Estimate(
        requests=_build_figure(sums["requests"], part, ""),
        tokens=_build_figure(tokens, part, "tokens") if tokens.high else None,
        cost=_build_figure(sums["cost"], part, "dollars") if sums["cost"].high or free else None,
        seconds=_build_figure(time, part, "s") if time.high else None,
        unpriced=tuple(totals.unpriced),
        sources=sources,
        capped=part < 1,
    )


def _compute_share(cap: int | None, total: _RangeSum) -> float:
    return 1.0 if cap is None or not total.high else cap / total.high


def _compute_seconds(totals: _EstimateTotals, planned: Sequence[PlannedTrials], limits: RemainingLimits) -> _RangeSum:
    """Return the seconds of the slowest provider, with as many simultaneous trials as it and the run allow."""
    time = _RangeSum()
    for trials in planned:
        at_once = max(
            1, min(trials.max_concurrency, limits.jobs or trials.max_concurrency, totals.trials[trials.provider])
        )
        busy = totals.busy[trials.provider]
        time = _RangeSum(max(time.low, busy.low / at_once / 1000), max(time.high, busy.high / at_once / 1000))
    return time


def _build_figure(total: _RangeSum, part: float, unit: str) -> Figure:
    return Figure(min(total.low, part * total.high), part * total.high, unit)


def _describe_sources(found: Sequence[SimilarCells | None], totals: _EstimateTotals) -> tuple[str, ...]:
    counted: dict[str, int] = defaultdict(int)
    for found_cells in found:
        if found_cells is not None:
            counted[found_cells.description] += 1
    history = tuple(f"{count} cell{'' if count == 1 else 's'} from {words}" for words, count in counted.items())
    return (*history, *(f"prices: {named}" for named in totals.prices))
