"""Effective sample sizes of clustered counts, such as calls of one trial or trials of one instance."""

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums over `m` clusters, each with k of n: the sums of k, n, k², kn and n²."""

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
        """Return how many times the share varies more than that of as many independent counts; at least 1.

        If every count is the same, the correlation cannot be seen: each cluster then counts as one trial (the mean
        cluster size, weighted by size, is returned).
        """
        if not self.n or self.nn == self.n:  # every cluster has one trial
            return 1.0
        share = self.k / self.n
        alike = self.nn / self.n
        if share in (0.0, 1.0) or self.m < 2:
            return alike
        between = self.m / (self.m - 1) * (self.kk - 2 * share * self.kn + share**2 * self.nn)
        return min(max(1.0, between / (self.n * share * (1 - share))), alike)

    def compute_effective_counts(self, design_effect: float | None = None) -> tuple[int, int]:
        """Return k and n of as many independent counts as these are worth.

        Both are rounded so that the share is kept as far as whole numbers allow; (0, 0) without counts.
        """
        if not self.n:
            return 0, 0
        n = max(1, floor(self.n / (design_effect or self.design_effect)))
        return round(n * self.k / self.n), n
