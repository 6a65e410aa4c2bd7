"""What trials are likely to take, from trials that were made before: requests, tokens, money, time, each as a range,
and where it comes from. What history does not say is unknown, never 0."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Avg, Count, QuerySet, Variance

from toolbench.evals.prices import Price, price_of
from toolbench.lab.confirmation import FREE_KINDS
from toolbench.lab.metrics.definitions import Figure
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.models import Trial
from toolbench.lab.planning.earlier_cells import Asked, History, find_history

FIGURES = ("requests", "input_tokens", "output_tokens", "cost", "duration_ms")


@dataclass(frozen=True, slots=True)
class Limits:
    """What may still be sent and asked for at most; None for no limit. `jobs`: trials at once at one provider."""

    requests: int | None = None
    tokens: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Ranges; None is unknown. `seconds` supposes that every provider works at its own limit. `unpriced` are models
    without a price: `cost` is then of the others only. `sources` say in words what the ranges stand on. `unseen` cells
    of all `cells` are like nothing that was tried: their requests are the least and the most they can be, and tokens,
    cost and time are of the others only."""

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
class Sample:
    """Values of one figure in `n` earlier trials of one cell."""

    n: int
    mean: float
    variance: float


@dataclass(slots=True)
class _Sum:
    """Ranges added up: as if all erred to the same side."""

    low: float = 0.0
    high: float = 0.0

    def add(self, low: float, high: float) -> None:
        self.low += low
        self.high += high


@dataclass(slots=True)
class _Totals:
    figures: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    busy: dict[int, _Sum] = field(default_factory=lambda: defaultdict(_Sum))  # milliseconds by provider
    trials: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    unpriced: dict[str, None] = field(default_factory=dict)
    prices: dict[str, None] = field(default_factory=dict)


def forecast(asked: Sequence[Asked], limits: Limits) -> Forecast | None:
    """Four queries. None where nothing is asked for, or there is no history at all."""
    found = find_history(asked)
    pairs = list(zip(asked, found, strict=True))
    unseen = [one for one, history in pairs if history is None]
    if not any(found) or not all(one.requests for one in unseen):
        return None
    samples = _samples({cell for one in found if one for cell in (*one.cells, *one.others)})
    totals = _Totals()
    for one, history in pairs:
        if history is not None:
            _add(totals, one, _of(history, samples))
        elif one.requests is not None:
            totals.figures["requests"].add(one.least * one.requests[0], one.most * one.requests[1])
    known = [one for one, history in pairs if history is not None]
    told = _within(totals, known, limits, _sources(found, totals))
    return replace(told, cells=len(asked), unseen=len(unseen))


def spread(samples: Sequence[Sample], least: int, most: int) -> tuple[float, float]:
    """What `least` to `most` further trials add up to: the mean seen, less and more by two standard errors of such a
    sum. The errors are those of the trials to come, of the mean seen, and of a cell that is not like the others."""
    n = sum(one.n for one in samples)
    mean = sum(one.n * one.mean for one in samples) / n
    within = sum(one.n * one.variance for one in samples) / n
    between = sum((one.mean - mean) ** 2 for one in samples) / max(1, len(samples) - 1)

    def off(trials: int) -> float:
        return 2 * float((trials * within + trials**2 * (within / n + between)) ** 0.5)

    return max(0.0, least * mean - off(least)), most * mean + off(most)


def _samples(cells: Iterable[int]) -> Mapping[int, Mapping[str, Sample]]:
    """By cell and figure; a figure that no trial of the cell has is left out."""
    tried: QuerySet[Trial] = Trial.objects.filter(TRIED, cell_id__in=list(cells), state="done").order_by()
    numbers = {f"{name}_{what.name}": what(name) for name in FIGURES for what in (Count, Avg, Variance)}
    lines: Any = tried.values("cell_id").annotate(**numbers)
    return {
        line["cell_id"]: {
            name: Sample(line[f"{name}_Count"], line[f"{name}_Avg"], line[f"{name}_Variance"] or 0.0)
            for name in FIGURES
            if line[f"{name}_Count"]
        }
        for line in lines
    }


def _of(history: History, samples: Mapping[int, Mapping[str, Sample]]) -> list[Mapping[str, Sample]]:
    """What another model cost says nothing about this one."""
    others = (samples[cell] for cell in history.others if cell in samples and cell not in history.cells)
    without_cost = ({name: sample for name, sample in cell.items() if name != "cost"} for cell in others)
    return [*(samples[cell] for cell in history.cells if cell in samples), *without_cost]


def _add(totals: _Totals, one: Asked, cells: Sequence[Mapping[str, Sample]]) -> None:
    ranges = {
        name: spread(having, one.least, one.most)
        for name in FIGURES
        if (having := [cell[name] for cell in cells if name in cell])
    }
    for name in ("requests", "input_tokens", "output_tokens"):
        totals.figures[name].add(*ranges.get(name, (0.0, 0.0)))
    totals.busy[one.provider].add(*ranges.get("duration_ms", (0.0, 0.0)))
    totals.trials[one.provider] += one.most
    if one.kind in FREE_KINDS:
        return
    if "cost" in ranges:
        totals.figures["cost"].add(*ranges["cost"])
    elif (price := price_of(one.template, one.model_name)) and ranges.get("input_tokens", (0, 0))[1]:
        totals.figures["cost"].add(*_priced(price, ranges))
        totals.prices[price.named] = None
    else:
        totals.unpriced[one.model_name] = None


def _priced(price: Price, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    ends = zip(ranges["input_tokens"], ranges["output_tokens"], strict=True)
    low, high = (price.of(asked, answered) for asked, answered in ends)
    return low, high


def _within(totals: _Totals, asked: Sequence[Asked], limits: Limits, sources: tuple[str, ...]) -> Forecast:
    """Cut down to what the caps let through; what is sent less often costs less."""
    sums = totals.figures
    tokens = _Sum()
    for name in ("input_tokens", "output_tokens"):
        tokens.add(sums[name].low, sums[name].high)
    part = min(1.0, _part(limits.requests, sums["requests"]), _part(limits.tokens, tokens))
    time = _time(totals, asked, limits)
    free = all(one.kind in FREE_KINDS for one in asked)
    return Forecast(
        requests=_figure(sums["requests"], part, ""),
        tokens=_figure(tokens, part, "tokens") if tokens.high else None,
        cost=_figure(sums["cost"], part, "dollars") if sums["cost"].high or free else None,
        seconds=_figure(time, part, "s") if time.high else None,
        unpriced=tuple(totals.unpriced),
        sources=sources,
        capped=part < 1,
    )


def _part(cap: int | None, total: _Sum) -> float:
    return 1.0 if cap is None or not total.high else cap / total.high


def _time(totals: _Totals, asked: Sequence[Asked], limits: Limits) -> _Sum:
    """Seconds of the provider that takes longest, with as many trials at once as it and the run allow."""
    time = _Sum()
    for one in asked:
        at_once = max(1, min(one.places, limits.jobs or one.places, totals.trials[one.provider]))
        busy = totals.busy[one.provider]
        time = _Sum(max(time.low, busy.low / at_once / 1000), max(time.high, busy.high / at_once / 1000))
    return time


def _figure(total: _Sum, part: float, unit: str) -> Figure:
    return Figure(min(total.low, part * total.high), part * total.high, unit)


def _sources(found: Sequence[History | None], totals: _Totals) -> tuple[str, ...]:
    counted: dict[str, int] = defaultdict(int)
    for one in found:
        if one is not None:
            counted[one.words] += 1
    history = tuple(f"{count} cell{'' if count == 1 else 's'} from {words}" for words, count in counted.items())
    return (*history, *(f"prices: {named}" for named in totals.prices))
