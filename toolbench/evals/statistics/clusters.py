"""Effective counts of correlated observations, such as the trials of one instance or the calls of one trial."""

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums over clusters, each of which has its own k passes in n trials.

    Attributes:
        m: The number of clusters.
        k: The sum of k.
        n: The sum of n.
        kk: The sum of k².
        kn: The sum of k · n.
        nn: The sum of n².
    """

    m: int = 0
    k: float = 0
    n: float = 0
    kk: float = 0
    kn: float = 0
    nn: float = 0

    def __add__(self, other: "ClusterSums") -> "ClusterSums":
        return ClusterSums(
            self.m + other.m, self.k + other.k, self.n + other.n, self.kk + other.kk, self.kn + other.kn,
            self.nn + other.nn,
        )  # fmt: skip

    @property
    def design_effect(self) -> float:
        """Return the variance of the share, divided by that of equally many independent trials; at least 1.

        The greatest value is the mean cluster size, weighted by size. It is also the value if the correlation cannot be
        estimated because all trials pass, all trials fail, or there is only one cluster.
        """
        if not self.n or self.nn == self.n:  # every cluster has one trial
            return 1.0
        share = self.k / self.n
        mean_size = self.nn / self.n
        if share in (0.0, 1.0) or self.m < 2:
            return mean_size
        between = self.m / (self.m - 1) * (self.kk - 2 * share * self.kn + share**2 * self.nn)
        return min(max(1.0, between / (self.n * share * (1 - share))), mean_size)

    def compute_effective_counts(self) -> tuple[int, int]:
        """Return the effective counts: (k, n) of independent trials with the same share and variance.

        n is rounded down, to at least 1; k is n times the share, rounded to the nearest integer. Without trials both
        are 0.
        """
        if not self.n:
            return 0, 0
        n = max(1, floor(self.n / self.design_effect))
        return round(n * self.k / self.n), n
