"""Rate of k in n trials, turns, answers, calls or requests with its interval, compared with a target."""

from dataclasses import dataclass
from functools import lru_cache

from toolbench.evals.statistics import count_more_trials_to_reach_target
from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign, compute_interval
from toolbench.evals.statistics.pooling import PooledRate
from toolbench.evals.statistics.rounding import format_rounded, round_half_up

_SHARE_TOLERANCE = 1e-9  # shares that differ by less count as equal


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials, turns, answers, calls or requests with its interval, compared with a target.

    Attributes:
        k: the numerator, such as the number of trials that passed.
        n: the denominator, such as the number of trials with an answer.
        low: lower end of the interval, as a fraction.
        high: upper end of the interval, as a fraction.
        target: percent; None without a target.
        distinct: number of distinct answers; None if they were not counted.
        withheld: whether no interval is shown, because a deterministic endpoint repeats its answers.
        error: error probability of an anytime-valid interval, such as 0.05; None for a 95 % interval of `method`.
        method: name of the method of a 95 % interval.
        weighted_share: the share with equally weighted scenarios; None if they are not weighted or it equals `k / n`.
    """

    k: int
    n: int
    low: float
    high: float
    target: float | None = None
    distinct: int | None = None
    withheld: bool = False
    error: float | None = None
    method: str = "Wilson"
    weighted_share: float | None = None

    @property
    def level(self) -> str:
        """Confidence level of the interval in percent, such as 95 or 97.5."""
        return f"{100 * (1 - self.error):.4g}" if self.error else "95"

    @property
    def interval_name(self) -> str:
        """Name of the interval's method with its level."""
        return f"anytime-valid, {self.level} %" if self.error else f"{self.method}, 95 %"

    @property
    def share(self) -> float:
        """The rate as a fraction, with equally weighted scenarios if they were weighted; 0 if `n` is 0."""
        return self.weighted_share if self.weighted_share is not None else self.k / self.n if self.n else 0.0

    @property
    def axis(self) -> float:
        """Position of the share on the axis of a chart, in percent."""
        return round_half_up(100 * self.share, 1)

    @property
    def low_axis(self) -> float:
        """Position of the interval's lower end on the axis of a chart, in percent."""
        return round_half_up(100 * self.low, 1)

    @property
    def high_axis(self) -> float:
        """Position of the interval's upper end on the axis of a chart, in percent."""
        return round_half_up(100 * self.high, 1)

    @property
    def percent(self) -> str:
        """The share as text in whole percent.

        If `k` is neither 0 nor `n` but the text would be "0" or "100", it has one decimal, such as "99.6". If even that
        would be "0.0" or "100.0", the text is "<0.1" or ">99.9".
        """
        exact = 100 * self.share
        whole = format_rounded(exact)
        if not 0 < self.k < self.n or whole not in {"0", "100"}:
            return whole
        return {"0.0": "<0.1", "100.0": ">99.9"}.get(format_rounded(exact, 1), format_rounded(exact, 1))

    @property
    def low_percent(self) -> str:
        """Lower end of the interval in whole percent."""
        return format_rounded(100 * self.low)

    @property
    def high_percent(self) -> str:
        """Upper end of the interval in whole percent."""
        return format_rounded(100 * self.high)

    @property
    def withheld_text(self) -> str:
        """Text in place of a withheld interval: the number of distinct answers, if they were counted."""
        return "answers repeat" if self.distinct is None else f"{self.distinct} distinct"

    @property
    def text(self) -> str:
        """The rate as text, such as `9/10 (90 %, 60 to 98)`.

        The text is "–" if `n` is 0. If the interval is withheld, the percentage is left out too: `9/10, 3 distinct`.
        The name of an anytime-valid interval follows its ends.
        """
        if not self.n:
            return "–"
        if self.withheld:
            return f"{self.k}/{self.n}, {self.withheld_text}"
        kind = f", {self.interval_name}" if self.error else ""
        return f"{self.k}/{self.n} ({self.percent} %, {self.low_percent} to {self.high_percent}{kind})"

    @property
    def target_status(self) -> str:
        """Position of the interval relative to the target: `clears`, `below` or `open`.

        `clears`: the lower end is at least the target. `below`: the upper end is less than the target. `open`: neither
        holds, or there is no target, `n` is 0 or the interval is withheld.
        """
        if self.target is None or not self.n or self.withheld:
            return "open"
        if round(100 * self.low, 6) >= self.target:
            return "clears"
        return "below" if round(100 * self.high, 6) < self.target else "open"

    @property
    def meets_target(self) -> bool | None:
        """True if the interval clears the target, False if it is below, None if the status is open."""
        return {"clears": True, "below": False}.get(self.target_status)

    @property
    def status_text(self) -> str:
        """The status in words, such as "clears 95" or "undecided", for screen readers."""
        if not self.n:
            return "no trials"
        return "undecided" if self.target_status == "open" else f"{self.target_status} {self.target:g}"


# Pages compute intervals of the same few counts many times.
_compute_interval_cached = lru_cache(maxsize=8192)(compute_interval)


def build_rate(
    k: int,
    n: int,
    *,
    target: float | None = None,
    distinct: int | None = None,
    withheld: bool = False,
    stopping: StoppingDesign = FIXED_STOPPING,
) -> Rate:
    """Build the rate of `k` in `n` with the interval for the stopping design.

    Args:
        k: the numerator, such as the number of trials that passed.
        n: the denominator, such as the number of trials with an answer.
        target: percent; None without a target.
        distinct: number of distinct answers; None if they were not counted.
        withheld: whether the interval is not shown; then the stopping design is ignored.
        stopping: how the number of trials was determined.
    """
    stopping = FIXED_STOPPING if withheld else stopping
    low, high = _compute_interval_cached(k, n, stopping)
    return Rate(k=k, n=n, low=low, high=high, target=target, distinct=distinct, withheld=withheld, error=stopping.error)


def build_pooled_rate(
    k: int, n: int, pooled: PooledRate, *, distinct: int | None = None, withheld: bool = False
) -> Rate:
    """Build the rate of `k` in `n` with a share and an interval from equally weighted scenarios.

    Args:
        k: as in `build_rate`, over all scenarios.
        n: as in `build_rate`, over all scenarios.
        pooled: the share and the interval.
        distinct: as in `build_rate`.
        withheld: whether the interval is not shown.
    """
    share = pooled.share if n and abs(pooled.share - k / n) > _SHARE_TOLERANCE else None
    return Rate(
        k=k, n=n, low=pooled.low, high=pooled.high, distinct=distinct, withheld=withheld, error=pooled.error,
        method=pooled.method, weighted_share=share,
    )  # fmt: skip


def count_trials_to_decide(rate: Rate) -> int | None:
    """Return how many more trials would decide whether the target is met, if the share `k / n` stayed the same.

    Returns:
        The number; None if the target is met or missed already, if the share equals the target, with sequential
        stopping, and without a target, a trial or a shown interval.
    """
    if rate.target is None or not rate.n or rate.withheld or rate.error or rate.target_status != "open":
        return None
    if 100 * rate.k > rate.target * rate.n:
        return count_more_trials_to_reach_target(rate.k, rate.n, rate.target / 100)
    if 100 * rate.k == rate.target * rate.n:
        return None
    return count_more_trials_to_reach_target(rate.n - rate.k, rate.n, (100 - rate.target) / 100)
