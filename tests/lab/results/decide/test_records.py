"""Decision records: saved figures, later changes and exports."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Cell, DecisionRecord
from toolbench.lab.results.compare.warnings import SIMULATED
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import (
    build_frozen_rate,
    describe_row,
    export_record,
    find_leader_row,
    list_record_changes,
    record_to_json,
    save_record,
)

pytestmark = pytest.mark.django_db
FASTEST = DecideQuery(want="fastest")


def make_passing_cell(name: str = "vendor/steady", **run: Any) -> Cell:
    cell = make_cell(make_config(make_run(**run), make_model(name)))
    make_trials(cell, **{"pass": 76})
    return cell


def test_save_record_stores_rule_evidence_and_user(owner: User) -> None:
    cell = make_passing_cell()
    record = save_record(FASTEST, owner=owner, note="for the weather bot")
    row = find_leader_row(record)
    assert record.title == "Fastest, end-to-end success ≥ 90 %, p95 ≤ 20 s: vendor/steady"
    assert (record.who, record.note, record.verdict) == ("owner", "for the weather bot", "alone")
    assert record.rule == {"want": "fastest", "success": 90.0, "within_ms": 20_000.0}
    assert row
    assert (row["passed"], row["tried"], row["run_ids"], row["cell_ids"]) == (76, 76, [cell.run_id], [cell.pk])
    assert row["p95_ms"]["low"] < row["p95_ms"]["value"] <= row["p95_ms"]["high"]
    assert row["settings"] == cell.config.policy_hash


def test_list_record_changes_lists_newer_trials_and_keeps_evidence() -> None:
    cell = make_passing_cell()
    record = save_record(FASTEST, owner=None)
    assert list_record_changes(record) == ()
    for _ in range(20):
        make_trial(cell, "fail")
    make_passing_cell("vendor/new")
    mark_stale([cell.pk])
    recompute_stale_cells()
    stored_record = DecisionRecord.objects.get(pk=record.pk)
    assert stored_record.evidence == record.evidence
    answer, old, new = list_record_changes(stored_record)
    assert (answer.label, answer.then) == ("The answer", record.sentence)
    assert "76/76" in old.then
    assert "76/96" in old.now
    assert new.then == "not there"


def test_list_record_changes_lists_changed_decision_but_no_reworded_one() -> None:
    make_passing_cell()
    record = save_record(FASTEST, owner=None)
    now, record.sentence = record.sentence, "No configuration qualifies."
    assert list_record_changes(record) == ()
    record.verdict, record.leader = "none", ""
    (answer,) = list_record_changes(record)
    assert (answer.label, answer.then, answer.now) == ("The answer", "No configuration qualifies.", now)


def test_save_record_keeps_a_note_that_the_form_accepts() -> None:
    make_passing_cell()
    note = "\n".join(["x" * 39] * 100)
    assert save_record(FASTEST, owner=None, note=note.replace("\n", "\r\n")).note == note


def test_save_record_without_a_leader_stores_no_leader() -> None:
    make_trials(make_cell(make_config(make_run())), **{"fail": 5})
    record = save_record(FASTEST, owner=None)
    assert (record.verdict, record.leader) == ("none", "")
    assert find_leader_row(record) is None


def test_record_of_repeated_answers_has_no_interval() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for _ in range(4):
        make_trial(cell, answer_hash="same")
    recompute_stale_cells()
    record = save_record(FASTEST, owner=None)
    (row,) = record.evidence
    assert build_frozen_rate(row) == get_decide_page(FASTEST).rows[0].end_to_end
    assert build_frozen_rate(row).text == "4/4, 1 distinct"
    assert describe_row(row).startswith("refused, end-to-end success 4/4 without an interval, p95")
    assert export_record(record).rows[0][5:7] == (None, None)
    older_row = {name: value for name, value in row.items() if name not in ("withheld", "distinct")}
    assert build_frozen_rate(older_row).text == "4/4, answers repeat"


def test_export_record_writes_table_and_complete_json() -> None:
    make_passing_cell(simulated=True)
    record = save_record(DecideQuery(want="fastest", scope="demo"), owner=None)
    table = export_record(record)
    assert table.rows[0][:5] == ("Example · vendor/steady · default · production · native", "qualified", 76, 76, 76)
    assert SIMULATED in table.notes
    assert record_to_json(record)["evidence"] == record.evidence
