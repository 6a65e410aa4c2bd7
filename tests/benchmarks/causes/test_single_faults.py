"""Small part of the first measurement: the expected causes of single faults, and the causes found."""

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
PROVOKING_SCENARIOS = ("long_arguments_guard", "tool_output_truncation", "partial_success_failure", "recovery_busy")
NEVER_ANSWERS = {"hangs"}


def test_causes_file_names_every_fault_and_only_known_codes() -> None:
    rows = json.loads(CAUSES_FILE.read_text(encoding="utf-8"))["rows"]
    drifts = {persona.drift for persona in load_personas().values() if persona.drift}
    assert {row["drift"] for row in rows} == drifts
    entries = [item for row in rows for item in (row, *row.get("but", ()))]
    assert all(item["why"].endswith(".") for item in entries)
    assert {code for item in entries for code in item.get("causes", ())} <= set(load_causes())
    slugs = {scenario.slug for scenario in scenarios.list_scenarios()}
    assert {slug for item in entries for slug in item.get("scenarios", ())} <= slugs


def test_list_expected_causes_follows_fault_drawn_by_seed() -> None:
    found = {list_expected_causes(Cell(("reliable-70",), "happy_path"), seed) for seed in range(20)}
    assert found == {("no_call",), ("task_not_done",)}


@pytest.mark.parametrize("setting", [CellSettings(), CellSettings("production")])
def test_list_misses_finds_no_other_cause_for_single_faults(setting: CellSettings) -> None:
    personas = [item for slug, item in load_personas().items() if slug not in NEVER_ANSWERS]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, SHORT, [setting]))
    assert list_misses(played) == []
    assert sum(row.failed for row in count_causes(played)) > 60


def test_list_misses_finds_no_other_cause_for_streamed_faults() -> None:
    personas = [persona for persona in load_personas().values() if persona.group == "Streams"]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, ("happy_path",), [CellSettings(stream=True)]))
    assert list_misses(played) == []
    assert {row.persona for row in count_causes(played)} == {"stream-cut", "stream-error"}


def test_play_with_causes_gives_prose_one_cause_in_every_scenario() -> None:
    personas = [load_personas()[slug] for slug in PROSE]
    settings = [CellSettings(), CellSettings(method="text_json")]
    played = play_with_causes((cell, 0) for cell in iter_cells(personas, (*SHORT, *PROVOKING_SCENARIOS), settings))
    assert {item.cause for item in played if item.failed} == {"no_call"}
