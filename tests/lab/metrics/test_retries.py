"""Answers of 429 and 5xx, retries and back-off equal the counts of the server, over real HTTP."""

import json
import random
import threading
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from django.db.models import F

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.interchange.report.write import iter_report_files
from toolbench.lab.management.eval.output import render_run_lines
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.export_table import StreamedTable
from toolbench.lab.metrics.retries import RETRY_CONDITIONS, TRIAL_RETRY_COLUMNS, annotate_retry_counts, count_retries
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.values import MetricInput, compute_metric, compute_rate
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.sides import read_side
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import export_record, save_record
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 0.25  # Retry-After


class RateLimitedServer:
    """A server that answers 15 % of requests with 429 and a Retry-After, and some with 503; it counts what it sent."""

    def __init__(self) -> None:
        self.sent: Counter[int] = Counter()
        self._random = random.Random(11)
        self._lock = threading.Lock()

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        with self._lock:
            drawn = self._random.random()
            status = 429 if drawn < 0.15 else 503 if drawn < 0.18 else 200
            self.sent[status] += 1
        if status == 200:
            return answer_correctly(seen)
        return ScriptedReply(status, {"retry-after": str(WAIT_SECONDS)}, error_reply(status).body)


@pytest.fixture
def limited_run() -> tuple[Run, Counter[int]]:
    """Return a run of 20 trials in each of two scenarios, and the counts of the server by status."""
    server = RateLimitedServer()
    with ScriptedServer(server) as provider:
        model = make_scripted_model(provider, max_attempts=6)
        run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=20)
        assert run_worker_session(model) == 40
    return run, server.sent


def test_tally_cells_of_rate_limited_run_equals_server_counts(limited_run: tuple[Run, Counter[int]]) -> None:
    run, sent = limited_run
    assert sent[429] >= 5
    assert sent[503] >= 1
    counts = tally_cells(run.cells.all())
    assert (counts.answers_429, counts.answers_5xx) == (sent[429], sent[503])
    assert counts.retries == sent[429] + sent[503]
    assert counts.requests == sent.total()
    assert counts.passed == 40
    assert counts.retries_known
    assert counts.backoff_ms >= 1000 * WAIT_SECONDS * counts.retries


def test_trial_filter_had_finds_the_counted_trials(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    for cell in run.cells.all():
        shown = {had: filter_trials(TrialFilter(cell=cell.pk, had=had)).count() for had in RETRY_CONDITIONS}
        assert shown == {"429": cell.trials_429, "5xx": cell.trials_5xx, "retry": cell.trials_retried}


def test_count_retries_of_trials_equals_counts_of_cells(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    found = count_retries(Trial.objects.filter(run=run))
    for cell in run.cells.all():
        assert found[cell.scenario].answers_429 == cell.answers_429
        assert found[cell.scenario].answers_5xx == cell.answers_5xx
        assert found[cell.scenario].retries == cell.retries
        assert found[cell.scenario].trials_429 == cell.trials_429
        assert found[cell.scenario].backoff_ms == pytest.approx(cell.backoff_ms)


def test_read_side_takes_counters_only_of_whole_current_cells(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    trials, cells = Trial.objects.filter(run=run), run.cells.values_list("pk", flat=True)
    read_from_trials, read_from_cells = read_side(trials), read_side(trials, cells)
    for scenario, counts in read_from_trials.retries_by_scenario.items():
        counted = asdict(read_from_cells.retries_by_scenario[scenario])
        assert counted == asdict(counts) | {"backoff_ms": pytest.approx(counts.backoff_ms)}
    assert (read_from_cells.cost, read_from_cells.cost_source) == (read_from_trials.cost, read_from_trials.cost_source)
    run.cells.update(retries=F("retries") + 1)
    assert read_side(trials, cells).retries.retries == read_from_trials.retries.retries + len(cells)
    part = trials.exclude(pk=trials.order_by("pk")[0].pk)
    assert read_side(part, cells) == read_side(part)
    run.cells.update(stale=True)
    assert read_side(trials, cells) == read_from_trials


def list_table_rows(table: StreamedTable) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_trial_and_matrix_exports_equal_server_counts(limited_run: tuple[Run, Counter[int]]) -> None:
    run, sent = limited_run
    trials = list_table_rows(export_trials(run.pk))
    assert sum(row["answers_429"] for row in trials) == sent[429]
    assert sum(row["answers_5xx"] for row in trials) == sent[503]
    assert sum(row["retries_all"] for row in trials) == sent[429] + sent[503]
    (row,) = list_table_rows(export_matrix(MatrixQuery(scope="runs", runs=(run.pk,))))
    tools = tally_cells(run.cells.filter(control=False))
    assert (row["answers_429_ok"], row["answers_5xx_ok"]) == (tools.answers_429, tools.answers_5xx)
    assert (row["retried_ok"], row["retried_of"]) == (tools.retries, tools.requests)
    assert row["backoff_ms"] == pytest.approx(tools.backoff_ms)


def test_report_files_of_rate_limited_run_equal_server_counts(limited_run: tuple[Run, Counter[int]]) -> None:
    run, sent = limited_run
    files = {name: content for name, content in iter_report_files(run.pk)}
    trials = [json.loads(content)["toolbench"] for name, content in files.items() if "__trial_" in name]
    assert sum(trial["answers_429"] for trial in trials) == sent[429]
    (model,) = json.loads(files["summary.json"])["models"]
    overall = model["toolbench"]["rates"]["overall"]["retries"]
    assert (overall["answers_429"], overall["answers_5xx"]) == (sent[429], sent[503])
    head, _, row = [line for line in files["matrix.md"].decode().splitlines() if line.startswith("|")]
    shown = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert (shown["answers of 429"], shown["answers of 5xx"]) == (str(sent[429]), str(sent[503]))


def test_export_comparison_of_rate_limited_run_equals_server_counts(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    config = make_config(make_run(), model_name="other")
    for scenario in ("happy_path", "type_error_recovery"):
        make_step(make_trial(make_cell(config, scenario)), status=200)
    recompute_stale_cells()
    query = CompareQuery(a={"run": str(run.pk)}, b={"config": str(config.pk)})
    whole = next(row for row in list_table_rows(export_comparison(query)) if row["what"] == "whole")
    tools = tally_cells(run.cells.filter(control=False))
    assert (whole["first_answers_429"], whole["second_answers_429"]) == (tools.answers_429, 0)
    assert (whole["first_retries"], whole["second_retries"]) == (tools.retries, 0)


def test_decision_record_export_has_retries_unless_stored_before(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    record = save_record(DecideQuery(scope="runs", runs=(run.pk,)), owner=None)
    tools = tally_cells(run.cells.filter(control=False))
    assert list_table_rows(export_record(record))[0]["answers_429"] == tools.answers_429
    del record.evidence[0]["retries"]  # as records of before
    assert list_table_rows(export_record(record))[0]["answers_429"] is None


def test_render_run_lines_of_eval_count_answers_of_429(limited_run: tuple[Run, Counter[int]]) -> None:
    run, _ = limited_run
    tools = tally_cells(run.cells.filter(control=False))
    text = " ".join(render_run_lines(run, each_cell=False))
    assert f"{tools.answers_429} answers with status 429, {tools.answers_5xx} with 5xx, {tools.retries} retries" in text


def test_retries_of_a_trial_without_request_and_answer_are_zero() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "fail", end="DEADLINE_EXCEEDED", requests=0)
    recompute_stale_cells()
    assert tally_cells([Cell.objects.get()]).retries_known
    (trial,) = annotate_retry_counts(Trial.objects.all())
    assert {getattr(trial, name) for name in TRIAL_RETRY_COLUMNS} == {0}


def make_empty_cell() -> Cell:
    return make_cell(make_config(make_run()))


def recompute_counts(cell: Cell) -> tuple[int, int, int, float]:
    recompute_stale_cells()
    cell.refresh_from_db()
    return cell.answers_429, cell.trials_429, cell.answers_5xx, cell.backoff_ms


def test_recompute_keeps_answers_of_429_of_lost_execution() -> None:
    cell = make_empty_cell()
    trial = make_trial(cell, execution=2, requests=1)
    make_step(trial, execution=1, status=429, ok=False, error_code="rate_limited")
    make_step(trial, execution=1, attempt=2, backoff_ms=500.0, status=None, ok=False, error_code="cancelled")
    make_step(trial, execution=2, status=200)
    assert recompute_counts(cell) == (1, 1, 0, 500.0)
    assert tally_cells([cell]).retries_known


def test_recompute_counts_rate_limit_error_inside_answer_of_200() -> None:
    cell = make_empty_cell()
    trial = make_trial(cell)
    make_step(trial, status=200, ok=False, error_code="rate_limited")
    make_step(trial, status=200, ok=False, error_code="overloaded", attempt=2, backoff_ms=10.0)
    make_step(trial, attempt=3, backoff_ms=20.0, status=200)
    assert recompute_counts(cell) == (1, 1, 1, 30.0)


def test_recompute_answer_without_status_makes_retries_unknown() -> None:
    cell = make_empty_cell()
    make_step(make_trial(cell), status=None)
    recompute_counts(cell)
    assert not tally_cells([cell]).retries_known
    assert not count_retries(Trial.objects.all())["happy_path"].retries_known


def test_recompute_answered_trial_without_requests_makes_retries_unknown() -> None:
    cell = make_empty_cell()
    trial = make_trial(cell, requests=0)
    recompute_counts(cell)
    assert not tally_cells([cell]).retries_known
    assert not count_retries(Trial.objects.all())["happy_path"].retries_known
    side = read_side(Trial.objects.filter(pk=trial.pk))
    assert not side.retries.retries_known


def test_compute_rate_of_unknown_retries_is_none() -> None:
    cell = make_empty_cell()
    make_step(make_trial(cell), status=None)
    recompute_counts(cell)
    names = ("retried", "answers_429", "answers_5xx")
    assert {compute_rate(METRICS[name], tally_cells([cell]), tally_cells([])) for name in names} == {None}
    assert compute_metric(METRICS["backoff"], MetricInput(tally_cells([cell]), tally_cells([]))).figure is None
