"""The causes of every drift in every scenario and of 300 pairs of drifts: the whole of benchmarks.causes."""

import pytest

from benchmarks.causes.drifts import AIM, attributed, cells, misses
from benchmarks.causes.pairs import drawn_pairs, judge_pairs
from benchmarks.causes.playing import play
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import all_personas

pytestmark = pytest.mark.long


def test_drifts_in_every_scenario_get_their_cause() -> None:
    slugs = [scenario.slug for scenario in scenarios.all()]
    played = play((cell, 0) for cell in cells(all_personas().values(), slugs))
    failed = sum(row.failed for row in attributed(played))
    assert failed > 9_000
    assert len(misses(played)) <= (1 - AIM) * failed, misses(played)[:20]


def test_pairs_of_drifts_are_put_down_to_one_of_the_two() -> None:
    alone = [one for one in judge_pairs(drawn_pairs()) if one.accepted]
    assert len(alone) > 800
    wrong = [one for one in alone if not one.right]
    assert len(wrong) <= (1 - AIM) * len(alone), wrong
