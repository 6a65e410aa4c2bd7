"""Cells of the trial list as HTML."""

from datetime import UTC, datetime

import pytest

from toolbench.lab.results.trial_list.table import TRIAL_COLUMNS, TrialCell, TrialValue
from toolbench.web.templatetags.trial_cells import table_cells

NINE_O_CLOCK = datetime(2026, 11, 28, 9, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        ("text", "a <b> & 'c'", "a &lt;b&gt; &amp; &#x27;c&#x27;"),
        ("sentence", "x < y", "<span>x &lt; y</span>"),
        ("code", "<tool>", "<code>&lt;tool&gt;</code>"),
        ("path", "$.a<b>.c", "<code>$<wbr>.a&lt;b&gt;<wbr>.c<wbr></code>"),
        ("number", 12345, "12,345"),
        ("number", None, ""),
        ("seconds", 1234.5, "1.2"),
        ("seconds", None, ""),
        ("mark", "pass", '<span class="mark pass" >pass</span>'),
        ("moment", NINE_O_CLOCK, '<time datetime="2026-11-28T09:05:00+00:00">11-28 09:05</time>'),
        ("moment", None, ""),
    ],
)  # fmt: skip
def test_table_cells_of_each_kind_escapes_its_value(kind: str, value: TrialValue, content: str) -> None:
    assert table_cells([TrialCell(kind, "col-x", value, "")]) == f'<td class="col-x">{content}</td>'


def test_table_cells_escapes_titles() -> None:
    assert table_cells([TrialCell("text", "col-x", "a", 'say "<b>"')]) == (
        '<td class="col-x" title="say &quot;&lt;b&gt;&quot;">a</td>'
    )


def test_table_cells_renders_every_kind_of_column() -> None:
    values: dict[str, TrialValue] = {"number": 1, "seconds": 1.0, "moment": None, "mark": "fail"}
    cells = [TrialCell(column.kind, "", values.get(column.kind, ""), "") for column in TRIAL_COLUMNS.values()]
    assert table_cells(cells).count("</td>") == len(cells)
