"""Pages count the newest version of each scenario in view, and name the versions that they omit."""

import csv
import io
from typing import Any

import pytest
from django.db.models import F, Value
from django.http import QueryDict
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.evals.decisions.assessments import DecisionRule
from toolbench.evals.decisions.requirements import assess_config
from toolbench.lab.metrics.scenario_versions import (
    build_exclusion,
    find_omitted_versions,
    is_version_tokens,
    split_newest_versions,
)
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.failures.page import get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.matrix.details import get_row_details
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db
REAL = MatrixQuery(scope="real")
PASSED = {1: 3, 2: 5}  # by version


def make_versioned_run(version: int, *, model: str = "a", **counts: int) -> Run:
    """Make a drawn run of happy_path in this version, and of type_error_recovery, which has one version."""
    run = make_run(instance_kind="drawn")
    config = make_config(run, make_model(model))
    make_trials(make_cell(config, scenario_version=version), **(counts or {"pass": PASSED[version]}))
    make_trials(make_cell(config, "type_error_recovery"), **{"pass": 2})
    recompute_stale_cells()
    return run


@pytest.fixture
def runs() -> tuple[Run, Run]:
    return make_versioned_run(1), make_versioned_run(2)


def count_trials(query: str) -> int:
    return get_trials(TrialFilter.from_query(QueryDict(query))).total


def test_get_matrix_counts_newest_version_and_names_omitted_one(runs: tuple[Run, Run]) -> None:
    matrix = get_matrix(REAL)

    (row,) = matrix.rows
    assert (row.tally.passed, count_trials(row.trials_query)) == (9, 9)  # 5 of version 2, 2 + 2 of the other scenario
    assert any("happy_path version 1. Versions are different tasks" in sentence for sentence in matrix.warnings)
    panel = get_row_details(get_matrix(MatrixQuery(scope="real", cell=row.key)))
    assert panel is not None
    splits = {
        scenario.scenario: (scenario.tally.passed, count_trials(scenario.trials_query))
        for scenario in panel.scenario_details
    }
    assert splits == {"happy_path": (5, 5), "type_error_recovery": (4, 4)}


def test_get_matrix_of_earlier_run_shows_earlier_version(runs: tuple[Run, Run]) -> None:
    matrix = get_matrix(MatrixQuery(scope="runs", runs=(runs[0].pk,)))
    assert [(row.tally.passed, count_trials(row.trials_query)) for row in matrix.rows] == [(5, 5)]
    assert not any("version 1" in sentence for sentence in matrix.warnings)


def test_get_matrix_rows_name_versions_that_differ() -> None:
    make_versioned_run(1), make_versioned_run(2, model="b")
    assert {row.model: row.versions for row in get_matrix(REAL).rows} == {"a": (1,), "b": (2,)}


def test_matrix_export_omits_earlier_version(runs: tuple[Run, Run], admin_client: Client) -> None:
    Cell.objects.get(run=runs[0], scenario="happy_path").trials.update(duration_ms=10**7)
    recompute_stale_cells()
    text = read_html(admin_client.get("/matrix/export.csv?scope=real"))
    (row,) = csv.DictReader(make_sum_row for make_sum_row in io.StringIO(text) if not make_sum_row.startswith("#"))
    assert row["tool_ok"] == "9/9"
    assert int(row["p95_ms"]) < 10**7


def test_get_candidate_pool_counts_newest_version_and_names_omitted(runs: tuple[Run, Run]) -> None:
    pool = get_candidate_pool(DecideQuery())
    assert [candidate.measured.passed for candidate in pool.candidates] == [9]
    assert "happy_path version 1" in pool.cautions[0]
    old = get_candidate_pool(DecideQuery(scope="runs", runs=(runs[0].pk,)))
    assert [candidate.measured.passed for candidate in old.candidates] == [5]
    assert not any("version 1" in sentence for sentence in old.cautions)


def test_get_comparison_pairs_no_trials_of_different_versions(runs: tuple[Run, Run]) -> None:
    page = get_comparison(CompareQuery.from_query(QueryDict(f"a_run={runs[0].pk}&b_run={runs[1].pk}")))
    assert {row.scenario: (row.compared.first.n, row.compared.second.n) for row in page.rows} == {
        "type_error_recovery": (2, 2)
    }


def test_get_failures_groups_have_one_version_each() -> None:
    where = "no_call · happy_path · $ · turn 1"
    for version in (1, 2, 2):
        cell = make_cell(make_config(make_run(), make_model("a")), scenario_version=version)
        make_trial(cell, "fail", cause="no_call", cause_signature=where, taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    clusters = get_failures(FailuresQuery(by="scenario")).groups.shown
    assert [(cluster.version, cluster.count, count_trials(cluster.query)) for cluster in clusters] == [
        (2, 2, 2),
        (1, 1, 1),
    ]


def test_get_failures_heat_map_counts_newest_version_only() -> None:
    for version, outcome in ((1, "fail"), (1, "pass"), (2, "fail"), (2, "pass"), (2, "pass")):
        cell = make_cell(make_config(make_run(), make_model("a")), scenario_version=version)
        cause = "no_call" if outcome == "fail" else ""
        make_trial(cell, outcome, cause=cause, taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    page = get_failures(FailuresQuery())
    (row,), (column,) = page.heat_map.rows, page.heat_map.columns
    (heat,) = row.cells
    assert heat is not None
    assert (row.count, heat.rate.k, heat.rate.n, column.tried) == (1, 1, 3, 3)
    assert (count_trials(row.query), count_trials(heat.query)) == (1, 1)
    assert "happy_path version 1" in page.omission_notice


def test_get_failures_heat_map_keeps_column_of_earlier_version(owner_client: Client) -> None:
    """Model a has failures in versions 1 and 2, model b in version 1 only, model c in version 3 only."""
    failures = (("a", 1), ("a", 1), ("a", 2), ("b", 1), ("b", 1), ("b", 1), ("c", 3))
    for model, version in failures:
        cell = make_cell(make_config(make_run(), make_model(model)), scenario_version=version)
        make_trial(cell, "fail", cause="no_call", taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    page = get_failures(FailuresQuery())
    (row,) = page.heat_map.rows
    cells = {column.model: cell for column, cell in zip(page.heat_map.columns, row.cells, strict=True) if cell}
    assert {model: (item.rate.k, item.rate.n) for model, item in cells.items()} == {
        "a": (1, 1),
        "b": (3, 3),
        "c": (1, 1),
    }
    assert {model: count_trials(item.query) for model, item in cells.items()} == {"a": 1, "b": 3, "c": 1}
    versions = {column.model: column.versions for column in page.heat_map.columns}
    assert versions == {"a": ("happy_path version 2",), "b": ("happy_path version 1",), "c": ()}
    assert (row.count, count_trials(row.query)) == (1, 1)
    assert "b <small>happy_path version 1</small>" in read_html(owner_client.get("/failures/"))
    assert "“All” omits it" in page.omission_notice


def test_find_omitted_versions_separates_instance_kinds(runs: tuple[Run, Run]) -> None:
    published = make_trial(make_cell(make_config(make_run(instance_kind="parity"))), "pass").cell
    recompute_stale_cells()
    names = ("scenario", "scenario_version", "instance_kind", "sum_passed", "sum_failed", "sum_infra")
    sums = {f"sum_{name}": F(name) for name in ("passed", "failed", "infra")}
    model = {"provider_name": Value("Example"), "model_name": Value("a")}
    others, _ = find_omitted_versions(Cell.objects.annotate(**sums, **model).values(*model, *names))
    assert [(item.token, item.kind) for item in others] == [("happy_path@1:drawn", "drawn")]
    kept = Cell.objects.filter(build_exclusion(others[0].token))
    assert (kept.count(), published in kept) == (4, True)


def make_sum_row(slug: str, version: int, passed: int = 1, failed: int = 0, infra: int = 0) -> dict[str, Any]:
    sums = {"sum_passed": passed, "sum_failed": failed, "sum_infra": infra}
    return {"scenario": slug, "scenario_version": version, **sums}


def test_split_newest_versions_separates_scenarios() -> None:
    lines = [make_sum_row("a", 1), make_sum_row("a", 3), make_sum_row("b", 1)]
    newest, earlier = split_newest_versions(lines)
    assert (newest, earlier) == ([lines[1], lines[2]], [lines[0]])


def test_split_newest_versions_keeps_older_if_newer_has_no_trials() -> None:
    lines = [make_sum_row("a", 1, 200), make_sum_row("a", 2, 0)]
    assert split_newest_versions(lines) == ([lines[0]], [lines[1]])
    lines = [make_sum_row("a", 1, 200), make_sum_row("a", 2, 0, infra=1)]
    assert split_newest_versions(lines) == ([lines[1]], [lines[0]])


def test_split_newest_versions_without_trials_keeps_newest() -> None:
    lines = [make_sum_row("a", 1, 0), make_sum_row("a", 2, 0)]
    assert split_newest_versions(lines) == ([lines[1]], [lines[0]])


@pytest.mark.parametrize("counts", [{"queued": 4}, {"cancelled": 4}], ids=["queued", "cancelled"])
def test_matrix_and_decide_show_older_version_if_newer_has_no_trials(counts: dict[str, int]) -> None:
    make_versioned_run(1)
    make_versioned_run(2, model="a", **counts)

    (row,) = get_matrix(REAL).rows
    assert (row.tally.passed, count_trials(row.trials_query)) == (7, 7)
    assert [candidate.measured.passed for candidate in get_candidate_pool(DecideQuery()).candidates] == [7]


def test_get_candidate_pool_keeps_model_without_newer_version() -> None:
    make_versioned_run(1), make_versioned_run(2, model="b", infra=1)
    pool = get_candidate_pool(DecideQuery())
    found = {
        candidate.model: (candidate.measured.passed, candidate.measured.missing_scenarios)
        for candidate in pool.candidates
    }
    assert found == {"a": (5, ("happy_path version 2",)), "b": (2, ())}
    (reason, *_) = assess_config(
        next(candidate.measured for candidate in pool.candidates if candidate.model == "a"), DecisionRule()
    ).reasons
    assert (reason.kind, "happy_path version 2, which this decision counts" in reason.sentence) == ("refused", True)


def test_get_candidate_pool_ignores_version_without_trials() -> None:
    make_versioned_run(1)
    make_versioned_run(2, model="b", queued=3)
    assert [
        candidate.measured.missing_scenarios
        for candidate in get_candidate_pool(DecideQuery()).candidates
        if candidate.model == "a"
    ] == [()]


@pytest.mark.parametrize(("text", "is_valid"), [("a@1", True), ("a@1,b-c@12:drawn", True), ("a", False), ("@1", False)])
def test_is_version_tokens_requires_slug_and_version(text: str, is_valid: bool) -> None:
    assert is_version_tokens(text) is is_valid
