"""A small part of the first measurement: what each drift has to be put down to, and that it is."""

import json

import pytest

from benchmarks.causes.simulated_trials import play_with_causes
from benchmarks.causes.single_faults import (
    CAUSES_FILE,
    CellSettings,
    count_causes,
    iter_cells,
    list_expected_causes,
    list_misses,
)
from benchmarks.simulated_trials import Cell
from toolbench.evals import scenarios
from toolbench.evals.causes.table import load_causes
from toolbench.providers.simulated.personas import load_personas

PROSE = ("prose-only", "done-too-early")
SHORT = ("happy_path", "weather", "chat_only")
EVERYTHING_PROVOKED = ("long_arguments_guard", "tool_output_truncation", "partial_success_failure", "recovery_busy")
NEEDS_PATIENCE = {"hangs"}


def test_drift_causes_name_every_drift_known_codes_and_real_cells() -> None:
    rows = json.loads(CAUSES_FILE.read_text(encoding="utf-8"))["rows"]
    drifts = {persona.drift for persona in load_personas().values() if persona.drift}
    assert {row["drift"] for row in rows} == drifts
    every = [item for row in rows for item in (row, *row.get("but", ()))]
    assert all(item["why"].endswith(".") for item in every)
    assert {code for item in every for code in item.get("causes", ())} <= set(load_causes())
    slugs = {scenario.slug for scenario in scenarios.list_scenarios()}
    assert {slug for item in every for slug in item.get("scenarios", ())} <= slugs


def test_expected_causes_of_a_drawn_fault_are_those_of_the_fault() -> None:
    found = {list_expected_causes(Cell(("reliable-70",), "happy_path"), seed) for seed in range(20)}
    assert found == {("no_call",), ("task_not_done",)}


@pytest.mark.parametrize("setting", [CellSettings(), CellSettings("production")])
def test_drifts_failed_trials_get_the_drifts_cause(setting: CellSettings) -> None:
    personas = [item for slug, item in load_personas().items() if slug not in NEEDS_PATIENCE]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, SHORT, [setting]))
    assert list_misses(played) == []
    assert sum(row.failed for row in count_causes(played)) > 60


def test_streamed_drifts_failed_trials_get_the_drifts_cause() -> None:
    personas = [persona for persona in load_personas().values() if persona.group == "Streams"]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, ("happy_path",), [CellSettings(stream=True)]))
    assert list_misses(played) == []
    assert {row.persona for row in count_causes(played)} == {"stream-cut", "stream-error"}


def test_prose_gets_one_cause_whatever_came_before_it() -> None:
    personas = [load_personas()[slug] for slug in PROSE]
    settings = [CellSettings(), CellSettings(method="text_json")]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, (*SHORT, *EVERYTHING_PROVOKED), settings))
    assert {item.cause for item in played if item.failed} == {"no_call"}
