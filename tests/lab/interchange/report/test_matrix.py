"""The report's matrix as Markdown, and its findings."""

from collections import Counter
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trial, make_trials
from toolbench.lab.interchange.report.findings import build_findings
from toolbench.lab.interchange.report.matrix import escape_cell
from toolbench.lab.interchange.report.write import iter_report_files
from toolbench.lab.models import Cell, Run

pytestmark = pytest.mark.django_db


def render_report_matrix(run: Run) -> str:
    return dict(iter_report_files(run.pk))["matrix.md"].decode()


def read_table(run: Run) -> list[list[str]]:
    lines = [line for line in render_report_matrix(run).splitlines() if line.startswith("| ")]
    return [[part.strip() for part in line.strip("|").split(" | ")] for line in lines]


def test_report_matrix_begins_with_the_case_study_columns() -> None:
    config = make_config(make_run())
    for scenario, failed in (("happy_path", 1), ("type_error_recovery", 4), ("missing_workspace_id", 4)):
        make_trials(make_cell(config, scenario), **{"pass": 10 - failed, "fail": failed})
    make_trials(make_cell(config, "chat_only"), **{"pass": 9, "fail": 1})
    header, row = read_table(config.run)
    assert header[:7] == [
        *("model", "sampling_profile", "tool_ok", "tool_ok_rate", "control_ok (chat_only)", "p95_ms"),
        "top tool failures",
    ]
    assert row[:7] == [
        *("`vendor/model-a`", "`default`", "21/30", "70.0%", "9/10", "1100"),
        "missing_workspace_id x4; type_error_recovery x4; ASSERTION_FAILED x9",
    ]


def test_report_matrix_has_both_rates_for_all_tools_and_control() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 9, "infra": 1})
    make_trials(make_cell(config, "chat_only"), **{"fail": 1})
    header, row = read_table(config.run)
    cells = dict(zip(header, row, strict=True))
    assert cells["tools, answered success"] == "9/9 (100 %, 70 to 100)"
    assert cells["tools, end-to-end success"] == "9/10 (90 %, 60 to 98)"
    assert cells["overall, end-to-end success"] == "9/11 (82 %, 52 to 95)"
    assert cells["control, answered success"] == "0/1 (0 %, 0 to 79)"


def test_report_matrix_without_controls_says_none() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1})
    header, row = read_table(config.run)
    assert dict(zip(header, row, strict=True))["control_ok (chat_only)"] == "none"


def test_escape_cell_escapes_markdown_and_html() -> None:
    assert escape_cell("a|b\n<script>`x`") == "a\\|b &lt;script>'x'"


def test_report_findings_name_the_hardest_scenario_and_overlaps() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 40})
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 10, "fail": 30})
    assert "- Hardest scenario: long_arguments_guard, 10/40 (25 %, 14 to 40)." in render_report_matrix(config.run)
    make_trials(make_cell(config, "type_error_recovery"), **{"pass": 1, "fail": 2})
    assert "its interval overlaps with others, type_error_recovery among them" in render_report_matrix(config.run)


@pytest.mark.parametrize(
    ("others", "note"),
    [
        ({"second": {"deterministic": True}}, "; second has no interval, because its answers repeat."),
        (
            {"second": {"deterministic": True}, "wide": {"failed": 2, "passed": 1}},
            "; its interval overlaps with others, wide among",
        ),
        ({"second": {}, "hardest": {"deterministic": True}}, "; its answers repeat, so it has no interval."),
    ],
)
def test_hardest_scenario_names_scenarios_that_may_be_harder(others: dict[str, dict[str, Any]], note: str) -> None:
    counts = {"hardest": {"failed": 40}, "second": {"passed": 20, "failed": 20}, "wide": {}}
    cells = [
        Cell(scenario=name, repeated_answers=1, **counts[name] | others.get(name, {}))
        for name in counts
        if name in {"hardest", *others}
    ]
    finding, *_ = build_findings((), cells, Counter())
    assert finding.sentence.startswith("Hardest scenario: hardest, 0/40")
    assert note in finding.sentence


def test_report_findings_count_the_most_frequent_failure_class() -> None:
    escape_cell = make_cell(make_config(make_run()))
    for name in ("never_patched", "no_tool_calls", "never_patched"):
        make_trial(escape_cell, "fail", failure_class=name)
    assert (
        "- Most frequent failure class: never_patched, 2 of 3 failures. The model called tools"
        in render_report_matrix(escape_cell.run)
    )


def test_report_findings_count_quirks_by_trials() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    change = {"kind": "response", "name": "object_to_array", "path": "$", "before": "", "after": ""}
    for _ in range(2):
        make_step(trial, bodies={"facts": {"response_changes": [change], "findings": [{"code": "call_in_text"}]}})
    text = render_report_matrix(trial.run)
    assert "- vendor/model-a: transform object_to_array made a change in 1 trial." in text
    assert "- vendor/model-a: finding call_in_text occurred in 1 trial." in text


def test_report_findings_compare_profiles_only_without_overlap() -> None:
    run = make_run()
    for name, profile, passed in (("a", "p", 38), ("a", "q", 10), ("b", "p", 20), ("b", "q", 21)):
        config = make_config(run, make_model(name), profile=profile)
        make_trials(make_cell(config), **{"pass": passed, "fail": 40 - passed})
        if name == "a":
            make_trials(make_cell(config, "agent_intent", scenario_group="agents"), **{"pass": 5, "fail": 5})
    text = render_report_matrix(run)
    assert "- a (tools): best profile p, 38/40 (95 %, 83 to 99); worst q, 10/40 (25 %, 14 to 40)." in text
    assert "- Between the profiles of b, a (agents): no clear difference." in text


def test_report_findings_compare_profiles_with_equal_streaming() -> None:
    run = make_run()
    for stream, best in ((False, "p"), (True, "q")):
        for profile in ("p", "q"):
            passed = 38 if profile == best else 10
            cell = make_cell(make_config(run, profile=profile, stream=stream))
            make_trials(cell, **{"pass": passed, "fail": 40 - passed})
    text = render_report_matrix(run)
    assert "- vendor/model-a (not streamed): best profile p, 38/40" in text
    assert "- vendor/model-a (streamed): best profile q, 38/40" in text


def test_report_matrix_of_an_empty_run_is_written() -> None:
    assert "No trial failed." in render_report_matrix(make_run())


def test_report_matrix_has_a_table_for_each_scenario_group() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    make_trials(make_cell(config, "agent_intent", scenario_group="agents"), **{"pass": 1, "fail": 9})
    header, tools, second_header, agents = read_table(config.run)
    assert header == second_header
    assert [tools[2], agents[2]] == ["9/10", "1/10"]
    assert [line for line in render_report_matrix(config.run).splitlines() if line.startswith("## ")] == [
        *("## tools", "## agents", "## Findings"),
    ]
