"""Tests of effective sample sizes of clustered trials."""

import pytest

from toolbench.evals.statistics.clusters import ClusterSums


def build_sums(*clusters: tuple[int, int]) -> ClusterSums:
    total = ClusterSums()
    for k, n in clusters:
        total += ClusterSums(1, k, n, k * k, k * n, n * n)
    return total


def test_effective_counts_of_one_trial_a_cluster_are_the_counts() -> None:
    assert build_sums(*[(1, 1)] * 7, *[(0, 1)] * 3).compute_effective_counts() == (7, 10)


def test_effective_counts_of_uniform_clusters_are_one_each() -> None:
    assert build_sums(*[(10, 10)] * 5, *[(0, 10)] * 5).compute_effective_counts() == (5, 10)


def test_design_effect_of_equally_mixed_clusters_is_1() -> None:
    assert build_sums(*[(5, 10)] * 10).design_effect == 1


def test_effective_counts_if_all_trials_pass_are_one_a_cluster() -> None:
    assert build_sums(*[(4, 4)] * 10).compute_effective_counts() == (10, 10)


def test_effective_counts_without_trials_are_0() -> None:
    assert ClusterSums().compute_effective_counts() == (0, 0)
    assert ClusterSums().design_effect == 1


def test_design_effect_of_clusters_more_even_than_chance_is_1() -> None:
    sums = build_sums((2, 4), (2, 4), (3, 4))
    assert sums.design_effect == 1
    assert sums.compute_effective_counts() == (7, 12)


@pytest.mark.parametrize(
    "clusters",
    [
        ((1, 4), (3, 4)),
        ((0, 5), (2, 5), (5, 5)),
        ((1, 3), (4, 8), (0, 2), (7, 9)),
        ((1, 2), (1, 2), (2, 2), (0, 2)),
    ],
)
def test_design_effect_is_variance_between_clusters(clusters: tuple[tuple[int, int], ...]) -> None:
    """Compute the variance cluster by cluster, after Rao and Scott (1992)."""
    m, k, n = len(clusters), sum(k for k, _ in clusters), sum(n for _, n in clusters)
    share = k / n
    between = m / (m - 1) * sum((cluster_k - share * cluster_n) ** 2 for cluster_k, cluster_n in clusters)
    largest = sum(cluster_n**2 for _, cluster_n in clusters) / n
    expected = min(max(1.0, between / (n * share * (1 - share))), largest)
    assert build_sums(*clusters).design_effect == pytest.approx(expected)


def test_effective_counts_of_one_cluster_are_one_trial() -> None:
    assert build_sums((1, 4)).design_effect == 4
    assert build_sums((1, 4)).compute_effective_counts() == (0, 1)
    assert build_sums((4, 4)).compute_effective_counts() == (1, 1)


def test_effective_counts_if_no_trial_passes_are_one_a_cluster() -> None:
    assert build_sums(*[(0, 4)] * 10).compute_effective_counts() == (0, 10)


def test_effective_counts_are_at_least_one_trial() -> None:
    assert build_sums((2, 4)).compute_effective_counts() == (0, 1)
