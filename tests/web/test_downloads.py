"""Exports of tables as CSV, JSON and Markdown: values are kept, and text of models is escaped."""

import csv
import io
import json
from dataclasses import replace

import pytest

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.web.downloads import iter_csv, iter_json, iter_markdown

TABLE = ExportTable(
    "Matrix", ("note",), ("model", "tool_ok", "cost"), (("=cmd|'x'|a", "3/4", None), ("a|b<i>", "-", 0.5))
)


def test_iter_csv_disarms_formulas_and_keeps_dash() -> None:
    rows = list(csv.reader(io.StringIO("".join(iter_csv(TABLE)))))
    assert rows == [["model", "tool_ok", "cost"], ["'=cmd|'x'|a", "3/4", ""], ["a|b<i>", "-", "0.5"]]


def test_iter_json_keeps_unknown_values_as_null() -> None:
    assert json.loads("".join(iter_json(TABLE)))["rows"][0] == {"model": "=cmd|'x'|a", "tool_ok": "3/4", "cost": None}


def test_iter_json_has_version_and_times_beside_rows() -> None:
    found = json.loads("".join(iter_json(replace(TABLE, times=({"p95_ms_value": 3.0, "p95_ms_high": None},)))))
    assert list(found) == ["version", "title", "notes", "rows", "times"]
    assert (found["version"], found["times"]) == (2, [{"p95_ms_value": 3.0, "p95_ms_high": None}])
    assert "times" not in json.loads("".join(iter_json(TABLE)))


@pytest.mark.parametrize("rows", [(), (("a", "1/4", 1),), TABLE.rows])
@pytest.mark.parametrize("times", [(), ({"p95_ms_value": 3.0},)])
def test_iter_json_is_indented_like_one_dump(
    rows: tuple[tuple[str, str, float | None], ...], times: tuple[dict[str, float], ...]
) -> None:
    table = replace(TABLE, rows=rows, times=times)
    objects = [dict(zip(table.columns, row, strict=True)) for row in rows]
    document: dict[str, object] = {"version": 2, "title": "Matrix", "notes": ["note"], "rows": objects}
    document |= {"times": times} if times else {}
    assert "".join(iter_json(table)) == json.dumps(document, indent=1)


def test_iter_markdown_escapes_column_separators() -> None:
    lines = [line for line in "".join(iter_markdown(TABLE)).splitlines() if line.startswith("|")]
    assert lines[0] == "| model | tool_ok | cost |"
    assert lines[3] == "| a\\|b&lt;i> | - | 0.5 |"


def test_iter_markdown_uses_markdown_columns_of_table() -> None:
    lines = "".join(iter_markdown(replace(TABLE, markdown_columns=("cost", "model")))).splitlines()
    assert lines[-1] == "| 0.5 | a\\|b&lt;i> |"
