"""Counts that hang together: calls of one trial, trials of one instance. How many independent ones are they worth?"""

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums over `m` clusters of which each has k of n: of k, n, k², kn and n²."""

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
        """How many times the variance of the share is that of as many independent counts; at least 1. Where every
        count is alike it cannot be seen, so each cluster is taken to be worth one (its mean size, weighed by size)."""
        if not self.n or self.nn == self.n:  # every cluster has one
            return 1.0
        share = self.k / self.n
        alike = self.nn / self.n
        if share in (0.0, 1.0) or self.m < 2:
            return alike
        between = self.m / (self.m - 1) * (self.kk - 2 * share * self.kn + share**2 * self.nn)
        return min(max(1.0, between / (self.n * share * (1 - share))), alike)

    def compute_effective_counts(self, design_effect: float | None = None) -> tuple[int, int]:
        """As k of n independent counts, rounded so that the share is kept as far as whole numbers can."""
        if not self.n:
            return 0, 0
        n = max(1, floor(self.n / (design_effect or self.design_effect)))
        return round(n * self.k / self.n), n
