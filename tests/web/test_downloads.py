"""Exports keep every value, and what a model wrote stays text."""

import csv
import io
import json
from dataclasses import replace

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.web.downloads import render_csv, render_json, render_markdown

TABLE = ExportTable(
    "Matrix", ("note",), ("model", "tool_ok", "cost"), (("=cmd|'x'|a", "3/4", None), ("a|b<i>", "-", 0.5))
)


def test_csv_runs_no_formula_and_keeps_the_dash() -> None:
    rows = list(csv.reader(io.StringIO(render_csv(TABLE))))
    assert rows == [["model", "tool_ok", "cost"], ["'=cmd|'x'|a", "3/4", ""], ["a|b<i>", "-", "0.5"]]


def test_json_keeps_what_is_unknown_as_null() -> None:
    assert json.loads(render_json(TABLE))["rows"][0] == {"model": "=cmd|'x'|a", "tool_ok": "3/4", "cost": None}


def test_json_names_its_version_and_has_times_beside_the_rows() -> None:
    found = json.loads(render_json(replace(TABLE, times=({"p95_ms_value": 3.0, "p95_ms_high": None},))))
    assert list(found) == ["version", "title", "notes", "rows", "times"]
    assert (found["version"], found["times"]) == (2, [{"p95_ms_value": 3.0, "p95_ms_high": None}])
    assert "times" not in json.loads(render_json(TABLE))


def test_markdown_keeps_its_columns_whatever_is_inside() -> None:
    lines = [line for line in render_markdown(TABLE).splitlines() if line.startswith("|")]
    assert lines[0] == "| model | tool_ok | cost |"
    assert lines[3] == "| a\\|b&lt;i> | - | 0.5 |"


def test_markdown_has_the_brief_columns_where_a_table_names_them() -> None:
    lines = render_markdown(replace(TABLE, brief=("cost", "model"))).splitlines()
    assert lines[-1] == "| 0.5 | a\\|b&lt;i> |"
