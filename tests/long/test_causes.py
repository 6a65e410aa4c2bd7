"""Causes of every fault in every scenario and of 300 pairs of faults: all of benchmarks.causes."""

import pytest

from benchmarks.causes.fault_pairs import draw_pairs, judge_pairs
from benchmarks.causes.simulated_trials import play_with_causes
from benchmarks.causes.single_faults import MIN_SHARE, count_causes, iter_cells, list_misses
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.long


def test_causes_of_faults_in_every_scenario_are_found() -> None:
    slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
    trials = play_with_causes((cell, 0) for cell in iter_cells(load_personas().values(), slugs))
    failed = sum(row.failed for row in count_causes(trials))
    assert failed > 9_000
    assert len(list_misses(trials)) <= (1 - MIN_SHARE) * failed, list_misses(trials)[:20]


def test_causes_of_fault_pairs_are_one_of_the_two() -> None:
    judged_pairs = [pair for pair in judge_pairs(draw_pairs()) if pair.accepted]
    assert len(judged_pairs) > 800
    misses = [item for item in judged_pairs if not item.right]
    assert len(misses) <= (1 - MIN_SHARE) * len(judged_pairs), misses
