"""The metric: its definition, what it is computed from, and its value."""

from collections.abc import Callable
from dataclasses import dataclass

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.times import Times, merge_times

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or its range over pooled parts; both ends are equal for one number.

    Unit: milliseconds, tokens, dollars or share.
    """

    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True)
class MetricInput:
    """The data that the values of a row are computed from.

    It holds the sums of tool scenarios and of control scenarios, and counts and times of the tool scenarios by
    scenario.
    """

    tools: Tally
    control: Tally
    parts: tuple[Tally, ...] = ()
    times: tuple[Times, ...] = ()

    @property
    def pooled_times(self) -> Times:
        """Times of all tool scenarios together."""
        return merge_times(self.times)


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of a metric: a rate, a figure, or a quantile of times.

    Attributes:
        denominator: k and n in words.
        judged: whether it is compared with the target; more is better.
        of_control: whether it covers the control scenarios alone.
        with_control: whether a rate includes control scenarios.
        quantile: a quantile with bounds; its `figure` is the range over scenarios, which older keys of exports have.
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
    missing: str = "none"  # what stands where there is no value

    @property
    def is_rate(self) -> bool:
        """Whether the metric is a share of trials."""
        return self.rate is not None

    @property
    def anchor(self) -> str:
        """Id of the metric on `/metrics/`."""
        return f"metric-{self.name}"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """Value of a metric: at most one of rate, figure and quantile.

    All are None where nothing was counted or the value is unknown. A quantile may have a figure beside it, for exports.
    """

    rate: Rate | None
    figure: Figure | None
    quantile: Quantile | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a value to show."""
        return any((self.rate, self.figure, self.quantile))


def compute_metric(metric: Metric, counted: MetricInput, *, target: float | None = None) -> MetricValue:
    """Compute the value of a metric for one row."""
    rate = compute_rate(metric, counted.tools, counted.control, target=target)
    found = metric.quantile(counted.pooled_times) if metric.quantile else None
    return MetricValue(rate, metric.figure(counted) if metric.figure else None, found)


def compute_rate(metric: Metric, tools: Tally, control: Tally, *, target: float | None = None) -> Rate | None:
    """Compute a metric's rate over its scenarios; None where the metric is no rate or is unknown."""
    if metric.rate is None:
        return None
    together = add_tallies((tools, control)) if metric.with_control else control if metric.of_control else tools
    return metric.rate(together, target if metric.judged else None)
