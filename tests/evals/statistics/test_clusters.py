"""Tests of effective sample sizes of clustered trials."""

import pytest

from toolbench.evals.statistics.clusters import ClusterSums


def of(*clusters: tuple[int, int]) -> ClusterSums:
    total = ClusterSums()
    for k, n in clusters:
        total += ClusterSums(1, k, n, k * k, k * n, n * n)
    return total


def test_one_count_a_cluster_is_worth_itself() -> None:
    assert of(*[(1, 1)] * 7, *[(0, 1)] * 3).compute_effective_counts() == (7, 10)


def test_clusters_that_are_all_or_nothing_are_worth_one_each() -> None:
    assert of(*[(10, 10)] * 5, *[(0, 10)] * 5).compute_effective_counts() == (5, 10)


def test_clusters_as_mixed_as_chance_lose_nothing() -> None:
    assert of(*[(5, 10)] * 10).design_effect == 1


def test_equal_counts_use_largest_possible_cluster_effect() -> None:
    assert of(*[(4, 4)] * 10).compute_effective_counts() == (10, 10)


def test_nothing_is_worth_nothing() -> None:
    assert ClusterSums().compute_effective_counts() == (0, 0)
    assert ClusterSums().design_effect == 1


def test_more_trials_never_are_worth_more_than_they_are() -> None:
    assert of((3, 4), (1, 4), (4, 4)).design_effect >= 1


@pytest.mark.parametrize(
    "clusters",
    [
        ((1, 4), (3, 4)),
        ((0, 5), (2, 5), (5, 5)),
        ((1, 3), (4, 8), (0, 2), (7, 9)),
        ((1, 2), (1, 2), (2, 2), (0, 2)),
    ],
)
def test_design_effect_is_the_variance_between_clusters(clusters: tuple[tuple[int, int], ...]) -> None:
    """Counted out cluster by cluster, after Rao and Scott (1992)."""
    m, k, n = len(clusters), sum(k for k, _ in clusters), sum(n for _, n in clusters)
    share = k / n
    between = m / (m - 1) * sum((one_k - share * one_n) ** 2 for one_k, one_n in clusters)
    worst = sum(one_n**2 for _, one_n in clusters) / n
    wanted = min(max(1.0, between / (n * share * (1 - share))), worst)
    assert of(*clusters).design_effect == pytest.approx(wanted)


def test_one_cluster_alone_is_worth_one() -> None:
    assert of((1, 4)).design_effect == 4
    assert of((1, 4)).compute_effective_counts() == (0, 1)
    assert of((4, 4)).compute_effective_counts() == (1, 1)


def test_clusters_without_a_pass_are_worth_one_each() -> None:
    assert of(*[(0, 4)] * 10).compute_effective_counts() == (0, 10)


def test_any_count_at_all_is_worth_at_least_one() -> None:
    assert of((2, 4)).compute_effective_counts(design_effect=100) == (0, 1)
