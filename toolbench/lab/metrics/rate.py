"""A rate as it may be shown: k of n with its interval, read against a target. Never one without the other."""

from dataclasses import dataclass
from functools import lru_cache

from toolbench.evals.statistics import count_more_trials_to_clear
from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign, compute_interval
from toolbench.evals.statistics.pooling import PooledRate
from toolbench.evals.statistics.rounding import format_rounded, round_half_up

_SHARE_TOLERANCE = 1e-9  # shares this close are one


@dataclass(frozen=True, slots=True)
class Rate:
    """`low` and `high` are fractions, the ends of the 95 % interval of that `method`; with an `error`, of the interval
    that holds at every look, as trials that went on until they were decided need it. `target` is a percentage or None.
    `distinct` is the number of different answers behind `n`, or None where it was not counted. `withheld`: the endpoint
    is deterministic and answers repeat, so the interval would claim too much. `weighted_share` is the share where
    scenarios weigh alike and that is not `k` of `n`."""

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
        """Of the interval, in percent: 95, 97.5."""
        return f"{100 * (1 - self.error):.4g}" if self.error else "95"

    @property
    def interval(self) -> str:
        """What kind it is, in words."""
        return f"always valid, {self.level} %" if self.error else f"{self.method}, 95 %"

    @property
    def share(self) -> float:
        """As a fraction; 0 without trials."""
        return self.weighted_share if self.weighted_share is not None else self.k / self.n if self.n else 0.0

    @property
    def axis(self) -> float:
        return round_half_up(100 * self.share, 1)

    @property
    def low_axis(self) -> float:
        return round_half_up(100 * self.low, 1)

    @property
    def high_axis(self) -> float:
        return round_half_up(100 * self.high, 1)

    @property
    def percent(self) -> str:
        """Whole percent; one decimal where rounding would claim all or nothing."""
        exact = 100 * self.share
        whole = format_rounded(exact)
        if not 0 < self.k < self.n or whole not in {"0", "100"}:
            return whole
        return {"0.0": "<0.1", "100.0": ">99.9"}.get(format_rounded(exact, 1), format_rounded(exact, 1))

    @property
    def low_percent(self) -> str:
        return format_rounded(100 * self.low)

    @property
    def high_percent(self) -> str:
        return format_rounded(100 * self.high)

    @property
    def text(self) -> str:
        """`9/10 (90 %, 60 to 98)`; a dash without trials, no interval where none may be claimed."""
        if not self.n:
            return "–"
        if self.withheld:
            return f"{self.k}/{self.n}, {self.distinct} distinct"
        kind = f", {self.interval}" if self.error else ""
        return f"{self.k}/{self.n} ({self.percent} %, {self.low_percent} to {self.high_percent}{kind})"

    @property
    def target_status(self) -> str:
        """clears, open or below: where the interval lies from the target. open when there is no target."""
        if self.target is None or not self.n or self.withheld:
            return "open"
        if round(100 * self.low, 6) >= self.target:
            return "clears"
        return "below" if round(100 * self.high, 6) < self.target else "open"

    @property
    def says(self) -> str:
        words = {"clears": f"clears {self.target}", "below": f"below {self.target}", "open": "undecided"}
        return words[self.target_status] if self.n else "nothing to judge"


def round_to_int(number: float) -> int:
    """The nearest whole number, halves upwards."""
    return int(round_half_up(number))


_compute_interval_cached = lru_cache(maxsize=8192)(
    compute_interval
)  # pages ask for the same few counts again and again


def build_rate(
    k: int,
    n: int,
    *,
    target: float | None = None,
    distinct: int | None = None,
    withheld: bool = False,
    stopping: StoppingDesign = FIXED_STOPPING,
) -> Rate:
    """The rate of `k` in `n`, with the interval that its trials' ending allows. A withheld one has no claim to name."""
    stopping = FIXED_STOPPING if withheld else stopping
    low, high = _compute_interval_cached(k, n, stopping)
    return Rate(k=k, n=n, low=low, high=high, target=target, distinct=distinct, withheld=withheld, error=stopping.error)


def build_pooled_rate(k: int, n: int, pooled: PooledRate, *, withheld: bool = False) -> Rate:
    """The rate of `k` in `n` with the interval of its scenarios weighing alike."""
    share = pooled.share if n and abs(pooled.share - k / n) > _SHARE_TOLERANCE else None
    return Rate(
        k=k, n=n, low=pooled.low, high=pooled.high, withheld=withheld, error=pooled.error, method=pooled.method,
        weighted_share=share,
    )  # fmt: skip


def count_trials_to_decide(rate: Rate) -> int | None:
    """How many more trials would decide against the target if the share stayed as it is; None when it is decided
    already, stands on the target, or went on until it was decided."""
    if rate.target is None or not rate.n or rate.withheld or rate.error or rate.target_status != "open":
        return None
    if 100 * rate.k > rate.target * rate.n:
        return count_more_trials_to_clear(rate.k, rate.n, rate.target / 100)
    if 100 * rate.k == rate.target * rate.n:
        return None
    return count_more_trials_to_clear(rate.n - rate.k, rate.n, (100 - rate.target) / 100)
