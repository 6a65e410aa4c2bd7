"""A rate as pages show it: k of n with its interval, compared with a target."""

from dataclasses import dataclass
from functools import lru_cache

from toolbench.evals.statistics import count_more_trials_to_clear
from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign, compute_interval
from toolbench.evals.statistics.pooling import PooledRate
from toolbench.evals.statistics.rounding import format_rounded, round_half_up

_SHARE_TOLERANCE = 1e-9  # shares this close are one


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials with its interval, compared with a target.

    Attributes:
        low, high: ends of the 95 % interval of `method`, as fractions; with an `error`, of the anytime-valid interval
            that sequential stopping needs.
        target: percent, or None.
        distinct: different answers among the `n`, or None where they were not counted.
        withheld: whether the endpoint is deterministic and repeats answers, so that the interval would be too narrow.
        weighted_share: the share with equally weighted scenarios, where it differs from `k` of `n`.
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
        """Level of the interval in percent: 95, 97.5."""
        return f"{100 * (1 - self.error):.4g}" if self.error else "95"

    @property
    def interval(self) -> str:
        """Name of the interval's method."""
        return f"anytime-valid, {self.level} %" if self.error else f"{self.method}, 95 %"

    @property
    def share(self) -> float:
        """The rate as a fraction; 0 without trials."""
        return self.weighted_share if self.weighted_share is not None else self.k / self.n if self.n else 0.0

    @property
    def axis(self) -> float:
        """Position of the share on the axis of a bar."""
        return round_half_up(100 * self.share, 1)

    @property
    def low_axis(self) -> float:
        """Position of the lower end on the axis of a bar."""
        return round_half_up(100 * self.low, 1)

    @property
    def high_axis(self) -> float:
        """Position of the upper end on the axis of a bar."""
        return round_half_up(100 * self.high, 1)

    @property
    def percent(self) -> str:
        """Whole percent; one decimal where rounding would give 0 or 100."""
        exact = 100 * self.share
        whole = format_rounded(exact)
        if not 0 < self.k < self.n or whole not in {"0", "100"}:
            return whole
        return {"0.0": "<0.1", "100.0": ">99.9"}.get(format_rounded(exact, 1), format_rounded(exact, 1))

    @property
    def low_percent(self) -> str:
        """Lower end in percent."""
        return format_rounded(100 * self.low)

    @property
    def high_percent(self) -> str:
        """Upper end in percent."""
        return format_rounded(100 * self.high)

    @property
    def text(self) -> str:
        """Text such as `9/10 (90 %, 60 to 98)`; a dash without trials, no interval where none is valid."""
        if not self.n:
            return "–"
        if self.withheld:
            return f"{self.k}/{self.n}, {self.distinct} distinct"
        kind = f", {self.interval}" if self.error else ""
        return f"{self.k}/{self.n} ({self.percent} %, {self.low_percent} to {self.high_percent}{kind})"

    @property
    def target_status(self) -> str:
        """Position of the interval: `clears`, `open` or `below` the target; `open` without a target."""
        if self.target is None or not self.n or self.withheld:
            return "open"
        if round(100 * self.low, 6) >= self.target:
            return "clears"
        return "below" if round(100 * self.high, 6) < self.target else "open"

    @property
    def meets_target(self) -> bool | None:
        """Whether the interval lies above the target; None if it does not lie on one side."""
        return {"clears": True, "below": False}.get(self.target_status)

    @property
    def status_text(self) -> str:
        """The rate and its status in words, for screen readers."""
        if not self.n:
            return "nothing to judge"
        return "undecided" if self.target_status == "open" else f"{self.target_status} {self.target:g}"


# Pages ask for the same few counts again and again.
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
    """Build the rate of `k` in `n` with the interval that fits how its trials ended.

    A withheld rate names no interval.
    """
    stopping = FIXED_STOPPING if withheld else stopping
    low, high = _compute_interval_cached(k, n, stopping)
    return Rate(k=k, n=n, low=low, high=high, target=target, distinct=distinct, withheld=withheld, error=stopping.error)


def build_pooled_rate(k: int, n: int, pooled: PooledRate, *, withheld: bool = False) -> Rate:
    """Build the rate of `k` in `n` with the interval of equally weighted scenarios."""
    share = pooled.share if n and abs(pooled.share - k / n) > _SHARE_TOLERANCE else None
    return Rate(
        k=k, n=n, low=pooled.low, high=pooled.high, withheld=withheld, error=pooled.error, method=pooled.method,
        weighted_share=share,
    )  # fmt: skip


def count_trials_to_decide(rate: Rate) -> int | None:
    """Return how many more trials would decide whether the target is met, if the share stayed the same.

    Returns:
        None when it is decided, lies on the target, or belongs to sequential stopping.
    """
    if rate.target is None or not rate.n or rate.withheld or rate.error or rate.target_status != "open":
        return None
    if 100 * rate.k > rate.target * rate.n:
        return count_more_trials_to_clear(rate.k, rate.n, rate.target / 100)
    if 100 * rate.k == rate.target * rate.n:
        return None
    return count_more_trials_to_clear(rate.n - rate.k, rate.n, (100 - rate.target) / 100)
