"""The causes of every drift in every scenario and of 300 pairs of drifts: the whole of benchmarks.causes."""

import pytest

from benchmarks.causes.fault_pairs import draw_pairs, judge_pairs
from benchmarks.causes.simulated_trials import play_with_causes
from benchmarks.causes.single_faults import MIN_SHARE, count_causes, iter_cells, list_misses
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.long


def test_drifts_in_every_scenario_get_their_cause() -> None:
    slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
    played = play_with_causes((cell, 0) for cell in iter_cells(load_personas().values(), slugs))
    failed = sum(row.failed for row in count_causes(played))
    assert failed > 9_000
    assert len(list_misses(played)) <= (1 - MIN_SHARE) * failed, list_misses(played)[:20]


def test_pairs_of_drifts_are_put_down_to_one_of_the_two() -> None:
    alone = [pair for pair in judge_pairs(draw_pairs()) if pair.accepted]
    assert len(alone) > 800
    wrong = [item for item in alone if not item.right]
    assert len(wrong) <= (1 - MIN_SHARE) * len(alone), wrong
