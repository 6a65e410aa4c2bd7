"""Exports of the matrix: the seven columns of the case study, then those of Toolbench."""

from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.evals.statistics import compute_quantile
from toolbench.lab import builtin_data
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import RunConfig
from toolbench.lab.results.matrix.case_study import CASE_STUDY_COLUMNS
from toolbench.lab.results.matrix.export import COLUMN_BY_METRIC, export_matrix
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.run.metrics import get_run_metrics

pytestmark = pytest.mark.django_db
REAL = MatrixQuery(scope="real")


@pytest.fixture
def config() -> RunConfig:
    config = make_config(make_run())
    for scenario, failed in (("happy_path", 1), ("long_arguments_guard", 4)):
        make_trials(make_cell(config, scenario), **{"pass": 10 - failed, "fail": failed})
    make_trials(make_cell(config, "chat_only"), **{"pass": 9, "fail": 1})
    return config


def test_export_matrix_begins_with_the_case_study_columns(config: RunConfig) -> None:
    table = export_matrix(REAL)
    assert table.columns[:7] == CASE_STUDY_COLUMNS
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["tool_ok"] == "15/20"
    assert row["tool_ok_rate"] == "75.0%"
    assert row["control_ok (chat_only)"] == "9/10"
    assert row["top tool failures"] == "long_arguments_guard x4; happy_path x1; ASSERTION_FAILED x5"
    assert (row["given_ok"], row["given_of"]) == (15, 20)


def test_export_matrix_is_cached_until_a_figure_changes(config: RunConfig) -> None:
    refresh_pools()
    table = export_matrix(REAL)
    assert export_matrix(REAL) is table
    make_trial(config.run.cells.earliest("pk"), "fail")
    config.run.cells.update(stale=True)
    recompute_stale_cells()
    assert dict(zip(table.columns, export_matrix(REAL).rows[0], strict=True))["given_of"] == 21


def test_export_matrix_names_the_version_of_each_scenario(config: RunConfig) -> None:
    for version in (9, 10):
        make_trials(make_cell(config, "case-of-a-user", scenario_version=version), **{"pass": 3})
    table = export_matrix(REAL)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["scenario_versions"] == "case-of-a-user@10 chat_only@1 happy_path@1 long_arguments_guard@1"
    assert "scenario_versions" in table.markdown_columns


def test_export_matrix_has_every_metric_with_its_denominator(config: RunConfig) -> None:
    cell = make_cell(config)
    make_trial(cell, "pass", call_expected=False, first_token_ms=40.0, missing_calls=1)
    recompute_stale_cells()
    table = export_matrix(REAL)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    column_names = {name.removesuffix("_of").removesuffix("_ms_value") for name in table.columns}
    assert set(METRICS) <= column_names | set(COLUMN_BY_METRIC)
    assert (row["missing_calls_ok"], row["missing_calls_of"]) == (1, row["schema_of"])
    assert (row["trigger_precision_ok"], row["trigger_precision_of"]) == (0, 1)
    assert row["first_token_ms"] == 40.0
    assert (row["control_ok"], row["control_of"]) == (9, 10)
    assert row["pass_hat_3"] is not None


def test_export_matrix_has_quantiles_beside_the_older_columns(config: RunConfig) -> None:
    make_trials(make_cell(config, "multi_turn"), **{"pass": 80})
    table = export_matrix(REAL)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    times = [*(2 * [1000.0 + 10 * index for index in range(1, 11)]), *(1000.0 + 10 * index for index in range(1, 81))]
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        found = compute_quantile(times, q)
        exported = [row[f"{name}_ms_{part}"] for part in ("value", "low", "high")]
        assert exported == [found.value, found.low, found.high]
    assert row["p99_ms_high"] is None
    assert (row["p50_ms"], row["p95_ms_from_60"]) == ("1050-1400", 1760.0)


def test_matrix_without_a_case_study_rule_has_no_case_study_verdict() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config, "of_a_pack"), "pass", parity_pass=None)
    recompute_stale_cells()
    (shown,) = get_matrix(replace(REAL, metric="parity")).rows
    assert shown.rate is not None
    assert (shown.rate.n, shown.rate.status_text) == (0, "no trials")
    (success_rows,) = [
        success_rows for title, success_rows in get_run_metrics(config.run_id).groups if title == "Success"
    ]
    assert "parity" not in {line.metric.name for line in success_rows}
    make_trials(make_cell(config), **{"pass": 1, "fail": 2})
    table = export_matrix(REAL)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["parity_ok"], row["parity_of"], row["tool_ok"]) == (1, 3, "2/4")


def test_export_matrix_keeps_rows_split_by_prompt_version(config: RunConfig) -> None:
    for version, outcome in (("1", "pass"), ("2", "fail")):
        make_trial(make_cell(config, f"happy_{version}"), outcome, prompt_version=version, duration_ms=5.0)
    recompute_stale_cells()
    table = export_matrix(replace(REAL, prompt=SPLIT_BY_PROMPT))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    rows_by_prompt = {row["prompt_version"]: (row["tool_ok"], row["p95_ms"], row["top tool failures"]) for row in rows}
    assert rows_by_prompt["1"] == ("1/1", 5, "-")
    assert rows_by_prompt["2"] == ("0/1", 5, "happy_2 x1; ASSERTION_FAILED x1")


@pytest.mark.parametrize(("count", "index"), [(1, 0), (4, 3), (10, 9), (20, 19), (21, 19), (40, 38)])
def test_export_matrix_p95_includes_controls_at_the_nearest_rank(count: int, index: int) -> None:
    config = make_config(make_run())
    cells = [make_cell(config), make_cell(config, "chat_only")]
    for place in range(count):
        make_trial(cells[place % 2], "pass", duration_ms=1000.0 * (count - place))
    recompute_stale_cells()
    assert dict(zip(CASE_STUDY_COLUMNS, export_matrix(REAL).rows[0][:7], strict=True))["p95_ms"] == 1000 * (index + 1)


def test_export_matrix_takes_five_queries(config: RunConfig, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(5):
        export_matrix(REAL)


def test_export_matrix_names_simulated_rows() -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 1})
    table = export_matrix(MatrixQuery(scope="demo"))
    assert any("Simulated" in note for note in table.notes)
    assert dict(zip(table.columns, table.rows[0], strict=True))["simulated"] is True


def test_export_matrix_of_published_scope_equals_the_publication() -> None:
    builtin_data.load_builtin_data()
    table = export_matrix(MatrixQuery(scope="published"))
    assert len(table.rows) == 29
    assert table.rows[0][:7] == ("anthropic/claude-opus-4.6:nitro", "default", "40/40", "100.0%", "10/10", 18392, "-")
    assert any("1002 of 1160" in note and "1002 of 1120" in note for note in table.notes)
