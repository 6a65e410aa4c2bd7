"""Types for a metric's definition, input and value, and the functions that compute the value."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.times import Times, merge_times

UNKNOWN = "unknown"  # value of Metric.missing for metrics whose counts or costs may be unknown


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or a range of numbers over scenarios, with its unit.

    Attributes:
        low: the number, or the lower end of the range.
        high: equal to `low` for a number.
        unit: "ms", "tokens", "dollars" or "share".
    """

    low: float
    high: float
    unit: str


@dataclass(frozen=True)
class MetricInput:
    """Counts and times of one row of results, from which its metrics are computed.

    Attributes:
        tools: sums over tool scenarios.
        control: sums over control scenarios.
        parts: sums of each tool scenario.
        times: times of each tool scenario, in the order of `parts`.
    """

    tools: Tally
    control: Tally
    parts: tuple[Tally, ...] = ()
    times: tuple[Times, ...] = ()

    @cached_property
    def pooled_times(self) -> Times:
        """Times of all tool scenarios together."""
        return merge_times(self.times)


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of a metric: a rate, a figure, or a quantile of times.

    Attributes:
        name: stable name in URLs and exports, such as `given`.
        label: name on pages.
        denominator: for a rate, what is counted out of what, such as "passed / trials with an answer"; otherwise a
            description of the figure or quantile.
        rate: computes the rate of a tally, with a target in percent; None if the metric is no rate.
        figure: computes the figure; None if there is none. The figure of a quantile is its range over scenarios, for
            older keys of exports.
        quantile: returns the quantile of times; None if the metric is no quantile.
        judged: whether the rate is compared with the target.
        of_control: whether the rate covers control scenarios only.
        with_control: whether the rate covers tool scenarios and control scenarios.
        missing: text to show if there is no value.
    """

    name: str
    label: str
    denominator: str
    rate: Callable[[Tally, float | None], Rate | None] | None = None
    figure: Callable[[MetricInput], Figure | None] | None = None
    quantile: Callable[[Times], Quantile | None] | None = None
    judged: bool = False
    of_control: bool = False
    with_control: bool = False
    missing: str = "none"

    @property
    def is_rate(self) -> bool:
        """Whether the metric is a rate."""
        return self.rate is not None

    @property
    def anchor(self) -> str:
        """HTML id of the metric on `/metrics/`."""
        return f"metric-{self.name}"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """Value of a metric: a rate, a figure or a quantile. Beside a quantile, there may be a figure for exports.

    Attributes:
        rate: None if the metric is no rate or its counts are unknown. If nothing was counted, `n` of the rate is 0.
        figure: None if the metric has no figure, nothing was counted or the figure is unknown.
        quantile: None if the metric is no quantile or there are no times.
    """

    rate: Rate | None
    figure: Figure | None
    quantile: Quantile | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a rate, a figure or a quantile; a rate with `n` 0 counts as known."""
        return any((self.rate, self.figure, self.quantile))


def compute_metric(metric: Metric, counts: MetricInput, *, target: float | None = None) -> MetricValue:
    """Compute the value of a metric for one row of results; `target` is in percent."""
    rate = compute_rate(metric, counts.tools, counts.control, target=target)
    quantile = metric.quantile(counts.pooled_times) if metric.quantile else None
    return MetricValue(rate, metric.figure(counts) if metric.figure else None, quantile)


def compute_rate(metric: Metric, tools: Tally, control: Tally, *, target: float | None = None) -> Rate | None:
    """Compute the rate of a metric over its scenarios; None if the metric is no rate or its counts are unknown.

    Args:
        metric: the metric.
        tools: sums over tool scenarios.
        control: sums over control scenarios.
        target: percent; used only if the metric is judged.
    """
    if metric.rate is None:
        return None
    tally = add_tallies((tools, control)) if metric.with_control else control if metric.of_control else tools
    return metric.rate(tally, target if metric.judged else None)
