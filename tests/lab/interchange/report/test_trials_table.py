"""The trials of a run as a table, from which the counts of its cells follow."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.lab.interchange.report import trials_table
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models.counters import TRIAL_COUNTERS

pytestmark = pytest.mark.django_db


def test_export_trials_loads_rows_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 3})
    monkeypatch.setattr(trials_table, "_TRIALS_PER_BATCH", 2)
    table = export_trials(cell.run_id)
    with CaptureQueriesContext(connection) as queries:
        assert len(list(table.rows)) == 3
    assert "DECLARE" in queries.captured_queries[0]["sql"]  # a cursor, which the server keeps


def test_export_trials_rows_add_up_to_the_counts_of_the_cell() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "pass", repaired_calls=1)
    make_trial(cell, "pass", errors_retried=1, missing_calls=2)
    make_trial(cell, "infra")
    recompute_stale_cells()
    cell.refresh_from_db()
    table = export_trials(cell.run_id)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    delivered = tally_cells([cell]).compute_end_to_end_success()
    passed = [row for row in rows if row["outcome"] == "pass" and not row["errors_retried"]]
    assert (len(passed), len(rows)) == (delivered.k, delivered.n) == (1, 3)
    assert [item["p50_ms_value"] for item in table.times] == [1010.0]
    for name in TRIAL_COUNTERS:
        assert sum(int(row[name] or 0) for row in rows) == getattr(cell, name)
