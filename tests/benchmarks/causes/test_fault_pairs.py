"""Small part of the second measurement: causes of failures with pairs of faults."""

from benchmarks.causes.fault_pairs import draw_pairs, is_composable, judge_pairs
from toolbench.providers.simulated.personas import load_personas


def test_draw_pairs_is_repeatable_and_combines_two_faults() -> None:
    drawn = draw_pairs(20)
    assert drawn == draw_pairs(20)
    drifts = [[load_personas()[persona].drift for persona in cell.personas] for cell, _ in drawn]
    assert all(len(set(pair)) == 2 for pair in drifts)


def test_is_composable_refuses_contradicting_faults() -> None:
    known = load_personas()
    assert not is_composable(known["broken-json"], known["fenced-calls"])
    assert not is_composable(known["stream-cut"], known["stream-no-done"])
    assert is_composable(known["equal-ids"], known["fenced-calls"])


def test_judge_pairs_assigns_failures_to_one_of_two_faults() -> None:
    judged = judge_pairs(draw_pairs(20), ("happy_path", "long_arguments_guard"))
    alone = [item for item in judged if item.accepted]
    assert len(alone) > 15
    assert [item for item in alone if not item.right] == []
