"""The matrix as Markdown, and the findings."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trial, make_trials
from toolbench.lab.interchange.report.matrix import escape_cell
from toolbench.lab.interchange.report.write import iter_report_files
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


def matrix(run: Run) -> str:
    return dict(iter_report_files(run.pk))["matrix.md"].decode()


def table(run: Run) -> list[list[str]]:
    lines = [line for line in matrix(run).splitlines() if line.startswith("| ")]
    return [[part.strip() for part in line.strip("|").split(" | ")] for line in lines]


def test_the_seven_columns_come_first_and_unchanged() -> None:
    config = make_config(make_run())
    for scenario, failed in (("happy_path", 1), ("type_error_recovery", 4), ("missing_workspace_id", 4)):
        make_trials(make_cell(config, scenario), **{"pass": 10 - failed, "fail": failed})
    make_trials(make_cell(config, "chat_only"), **{"pass": 9, "fail": 1})
    header, row = table(config.run)
    assert header[:7] == [
        *("model", "sampling_profile", "tool_ok", "tool_ok_rate", "control_ok (chat_only)", "p95_ms"),
        "top tool failures",
    ]
    assert row[:7] == [
        *("`vendor/model-a`", "`default`", "21/30", "70.0%", "9/10", "1100"),
        "missing_workspace_id x4; type_error_recovery x4; ASSERTION_FAILED x9",
    ]


def test_both_rates_follow_over_everything_tools_and_control() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 9, "infra": 1})
    make_trials(make_cell(config, "chat_only"), **{"fail": 1})
    header, row = table(config.run)
    said = dict(zip(header, row, strict=True))
    assert said["tools, answered success"] == "9/9 (100 %, 70 to 100)"
    assert said["tools, end-to-end success"] == "9/10 (90 %, 60 to 98)"
    assert said["overall, end-to-end success"] == "9/11 (82 %, 52 to 95)"
    assert said["control, answered success"] == "0/1 (0 %, 0 to 79)"


def test_without_controls_none_are_counted() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1})
    header, row = table(config.run)
    assert dict(zip(header, row, strict=True))["control_ok (chat_only)"] == "none"


def test_names_cannot_break_the_table() -> None:
    assert escape_cell("a|b\n<script>`x`") == "a\\|b &lt;script>'x'"


def test_the_hardest_scenario_is_named_with_its_doubt() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 40})
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 10, "fail": 30})
    assert "- Hardest scenario: long_arguments_guard, 10/40 (25 %, 14 to 40)." in matrix(config.run)
    make_trials(make_cell(config, "type_error_recovery"), **{"pass": 1, "fail": 2})
    assert "its interval overlaps with others, type_error_recovery among them" in matrix(config.run)


def test_the_most_frequent_cause_is_counted_among_all_failures() -> None:
    escape_cell = make_cell(make_config(make_run()))
    for name in ("never_patched", "no_tool_calls", "never_patched"):
        make_trial(escape_cell, "fail", failure_class=name)
    assert "- Most frequent cause: never_patched, 2 of 3 failures. The model called tools" in matrix(escape_cell.run)


def test_quirks_are_counted_by_trials() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    change = {"kind": "response", "name": "object_to_array", "path": "$", "before": "", "after": ""}
    for _ in range(2):
        make_step(trial, bodies={"facts": {"response_changes": [change], "findings": [{"code": "call_in_text"}]}})
    text = matrix(trial.run)
    assert "- vendor/model-a: object_to_array changed something in 1 trial." in text
    assert "- vendor/model-a: call_in_text was found in 1 trial." in text


def test_profiles_are_compared_only_where_their_intervals_do_not_overlap() -> None:
    run = make_run()
    for name, profile, passed in (("a", "p", 38), ("a", "q", 10), ("b", "p", 20), ("b", "q", 21)):
        config = make_config(run, make_model(name), profile=profile)
        make_trials(make_cell(config), **{"pass": passed, "fail": 40 - passed})
        if name == "a":
            make_trials(make_cell(config, "agent_intent", scenario_group="agents"), **{"pass": 5, "fail": 5})
    text = matrix(run)
    assert "- a (tools): best profile p, 38/40 (95 %, 83 to 99); worst q, 10/40 (25 %, 14 to 40)." in text
    assert "- Between the profiles of b, a (agents): no clear difference." in text


def test_an_empty_run_has_a_matrix_too() -> None:
    assert "No trial failed." in matrix(make_run())


def test_packs_have_tables_of_their_own() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    make_trials(make_cell(config, "agent_intent", scenario_group="agents"), **{"pass": 1, "fail": 9})
    header, tools, again, agents = table(config.run)
    assert header == again
    assert [tools[2], agents[2]] == ["9/10", "1/10"]
    assert [line for line in matrix(config.run).splitlines() if line.startswith("## ")] == [
        *("## tools", "## agents", "## Findings"),
    ]
