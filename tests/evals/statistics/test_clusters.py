"""Counts that hang together are worth fewer independent ones."""

from toolbench.evals.statistics.clusters import Clustered


def of(*clusters: tuple[int, int]) -> Clustered:
    total = Clustered()
    for k, n in clusters:
        total += Clustered(1, k, n, k * k, k * n, n * n)
    return total


def test_one_count_a_cluster_is_worth_itself() -> None:
    assert of(*[(1, 1)] * 7, *[(0, 1)] * 3).effective() == (7, 10)


def test_clusters_that_are_all_or_nothing_are_worth_one_each() -> None:
    assert of(*[(10, 10)] * 5, *[(0, 10)] * 5).effective() == (5, 10)


def test_clusters_as_mixed_as_chance_lose_nothing() -> None:
    assert of(*[(5, 10)] * 10).design_effect == 1


def test_where_every_count_is_alike_nothing_can_be_seen_and_the_worst_is_taken() -> None:
    assert of(*[(4, 4)] * 10).effective() == (10, 10)


def test_nothing_is_worth_nothing() -> None:
    assert Clustered().effective() == (0, 0)
    assert Clustered().design_effect == 1


def test_more_trials_never_are_worth_more_than_they_are() -> None:
    assert of((3, 4), (1, 4), (4, 4)).design_effect >= 1
