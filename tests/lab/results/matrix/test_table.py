"""Rows of the matrix: sums of cells, warnings and exclusions."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_published_snapshot,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from toolbench.evals.statistics import compute_quantile
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.lab.engine_version import EQUAL_VERSIONS_PATH
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import choose_scope, get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db
REAL = MatrixQuery(scope="real")


def tried(config: RunConfig, scenario: str = "happy_path", /, **counts: int) -> Cell:
    cell = make_cell(config, scenario, **({"scenario_group": "weather"} if scenario == "weather" else {}))
    make_trials(cell, **counts)
    return cell


def test_infrastructure_is_excluded_from_one_rate_and_fails_in_other() -> None:
    tried(make_config(make_run()), **{"pass": 7, "fail": 1, "infra": 2})
    given = get_matrix(REAL).rows[0].rate
    delivered = get_matrix(MatrixQuery(scope="real", metric="delivered")).rows[0].rate
    assert given is not None
    assert delivered is not None
    assert (given.k, given.n, delivered.k, delivered.n) == (7, 8, 7, 10)


def test_a_control_is_folded_away_and_never_enters_tool_success() -> None:
    config = make_config(make_run())
    tried(config, **{"pass": 10})
    tried(config, "chat_only", **{"fail": 10})
    row = get_matrix(REAL).rows[0]
    assert row.rate is not None
    assert (row.rate.k, row.rate.n) == (10, 10)
    control = get_matrix(MatrixQuery(scope="real", metric="control")).rows[0].rate
    assert control is not None
    assert (control.k, control.n, control.target) == (0, 10, None)


def test_runs_of_one_config_are_pooled_and_differing_settings_are_named() -> None:
    for hash_ in ("aaa", "bbb"):
        tried(make_config(make_run(), policy_hash=hash_), **{"pass": 5})
    matrix = get_matrix(REAL)
    assert [(row.tally.passed, row.differing) for row in matrix.rows] == [(10, ("settings",))]
    assert any("different settings" in warning for warning in matrix.warnings)


def test_matrix_warns_of_pooled_engine_versions() -> None:
    for engine in ("aaa", "bbb"):
        make_trials(make_cell(make_config(make_run(engine_version=engine))), **{"pass": 5})
    matrix = get_matrix(REAL)
    assert [row.differing for row in matrix.rows] == [("engine",)]
    assert any("different engine" in warning for warning in matrix.warnings)


def test_matrix_of_equal_engine_versions_has_no_warning() -> None:
    for engine in json.loads(EQUAL_VERSIONS_PATH.read_bytes())[0]["versions"]:
        make_trials(make_cell(make_config(make_run(engine_version=engine))), **{"pass": 5})
    matrix = get_matrix(REAL)
    assert [row.differing for row in matrix.rows] == [()]
    assert not any("different engine" in warning for warning in matrix.warnings)


def behind(query: MatrixQuery) -> list[tuple[int, int]]:
    """Of each row: the trials it counts, and those its link leads to."""
    matrix = get_matrix(query)
    counted = [row.control if matrix.metric.of_control else row.tally for row in matrix.rows]
    listed = [get_trials(TrialFilter.from_query(QueryDict(row.trials_query))).total for row in matrix.rows]
    return [(tally.trial_count, total) for tally, total in zip(counted, listed, strict=True)]


@pytest.mark.parametrize("metric", ["given", "control"])
def test_a_row_leads_to_exactly_the_trials_it_counts(metric: str) -> None:
    for number in range(2):
        run, other = make_run(simulated=False), make_run(instance_kind="drawn")
        twin = make_model("same", provider=make_provider("Other"))
        configs = [
            make_config(run, make_model("same")),
            make_config(run, make_model("same"), examples="weather-1"),
            make_config(run, make_model("same"), tool_use_mode="relaxed"),
            make_config(run, make_model("same"), stream=True),
            make_config(run, twin),
            make_config(other, twin),
            make_config(make_run(simulated=True), twin),
        ]
        for place, config in enumerate(configs, start=1):
            tried(config, **{"pass": place, "fail": number, "queued": 1})
            tried(config, "weather", **{"fail": 2})
            tried(config, "chat_only", **{"pass": 3 + place})
    for query in (MatrixQuery(scope="real"), MatrixQuery(scope="demo"), MatrixQuery(scope="real", group="weather")):
        assert all(counted == listed for counted, listed in behind(replace(query, metric=metric)))
    one = MatrixQuery(scope="runs", runs=(make_config(run).run_id, other.pk), metric=metric)
    assert len(behind(one)) == 6
    assert all(counted == listed for counted, listed in behind(one))


def test_strategies_methods_and_examples_are_rows_of_their_own() -> None:
    run = make_run()
    for name, value in (
        ("strategy", "production"),
        ("strategy", "raw"),
        ("method", "constrained"),
        ("examples", "w-1"),
    ):
        tried(make_config(run, None, **{name: value}), **{"pass": 1})
    matrix = get_matrix(REAL)
    assert len(matrix.rows) == 4
    assert set(matrix.differing_settings) == {"strategy", "method", "examples"}


def test_common_strategy_keeps_its_name_if_an_instance_kind_has_it_too() -> None:
    tried(make_config(make_run(), strategy="parity"), **{"pass": 1})
    settings = get_matrix(REAL).common_settings
    assert (settings["strategy"], settings["instances"]) == ("parity", "published wording")


def test_parity_and_drawn_instances_are_never_one_row() -> None:
    for kind in ("parity", "drawn"):
        tried(make_config(make_run(instance_kind=kind)), **{"pass": 1})
    assert len(get_matrix(REAL).rows) == 2


def test_simulated_and_deleted_runs_never_enter_the_default_scope() -> None:
    tried(make_config(make_run(simulated=True)), **{"pass": 3})
    gone = make_config(make_run())
    tried(gone, **{"pass": 3})
    Run.objects.filter(pk=gone.run_id).update(deleted_at="2026-01-01T00:00Z")
    assert get_matrix(REAL).rows == ()
    demo = get_matrix(MatrixQuery(scope="demo")).rows
    assert [row.simulated for row in demo] == [True]


def test_without_own_runs_the_published_figures_are_shown_first() -> None:
    assert choose_scope(MatrixQuery()).scope == "published"
    tried(make_config(make_run(simulated=True)), **{"pass": 1})
    assert choose_scope(MatrixQuery()).scope == "published"
    tried(make_config(make_run()), **{"pass": 1})
    assert choose_scope(MatrixQuery()).scope == "real"


def test_groups_of_scenarios_are_never_pooled() -> None:
    config = make_config(make_run())
    tried(config, **{"pass": 2})
    tried(config, "weather", **{"fail": 5})
    matrix = get_matrix(REAL)
    assert matrix.scenario_groups == ("tools", "weather")
    assert matrix.rows[0].tally.ended == 2
    assert get_matrix(MatrixQuery(scope="real", group="weather")).rows[0].tally.failed == 5


def test_matrix_row_pools_the_times_of_runs_and_scenarios() -> None:
    times = [float(time) for time in range(100, 112)]
    for run in (make_run(), make_run()):
        config = make_config(run)
        for scenario in ("happy_path", "type_error_recovery"):
            cell = make_cell(config, scenario)
            for time in times:
                make_trial(cell, duration_ms=time)
        make_trial(make_cell(config, "chat_only"), duration_ms=9_000.0)
    recompute_stale_cells()
    (row,) = get_matrix(REAL).rows
    assert (row.times.p50, row.times.p95) == (compute_quantile(4 * times, 0.5), compute_quantile(4 * times, 0.95))
    by_scenario = {scenario.scenario: scenario.times.p99 for scenario in row.scenarios}
    assert by_scenario["happy_path"] == compute_quantile(2 * times, 0.99)
    assert by_scenario["chat_only"] == compute_quantile(2 * [9_000.0], 0.99)


def test_matrix_row_shows_p95_from_one_answer_on() -> None:
    config = make_config(make_run())
    tried(config, **{"pass": 1})
    assert render_quantile(get_matrix(REAL).rows[0].times.p95) == "1.0 s [open – open, n = 1]"
    tried(config, "type_error_recovery", **{"infra": 3})
    assert render_quantile(get_matrix(REAL).rows[0].times.p95) == "1.0 s [open – open, n = 1]"


def test_not_applicable_is_neither_pass_nor_fail() -> None:
    tried(make_config(make_run(), tool_use_mode="disabled"), **{"na": 10})
    row = get_matrix(REAL).rows[0]
    assert not row.applicable
    assert row.rate is not None
    assert row.rate.n == 0
    assert get_matrix(REAL).summary.below == 0


def answered_alike(cell: Cell, count: int = 10) -> Cell:
    names = ("calling_turns", "answered_turns", "final_answers", "failed_calls", "arguments_asked")
    counted: dict[str, Any] = dict.fromkeys(names, 1)
    for _ in range(count):
        make_trial(cell, answer_hash="the same", call_expected=True, **counted)
    recompute_stale_cells()
    return cell


RATES = [name for name, metric in METRICS.items() if metric.rate and not metric.of_control]


@pytest.mark.parametrize("metric", RATES)
def test_intervals_are_withheld_for_deterministic_repeats(metric: str) -> None:
    answered_alike(make_cell(make_config(make_run()), deterministic=True))
    rate = get_matrix(MatrixQuery(scope="real", metric=metric)).rows[0].rate
    assert rate is not None
    assert rate.n
    assert (rate.withheld, rate.target_status, rate.distinct) == (True, "open", 1)


def test_equal_answers_of_an_endpoint_that_samples_keep_their_interval() -> None:
    config = make_config(make_run())
    answered_alike(make_cell(config))
    make_trials(make_cell(config, "type_error_recovery", deterministic=True), **{"pass": 3})
    rate = get_matrix(REAL).rows[0].rate
    assert rate is not None
    assert not rate.withheld


def test_no_row_is_best_while_intervals_overlap() -> None:
    run = make_run()
    for name, passed in (("a", 10), ("b", 9)):
        tried(make_config(run, make_model(name)), **{"pass": passed, "fail": 10 - passed})
    assert get_matrix(REAL).summary.overlapping == 1


def in_version(name: str, version: int, passed: int, *, scenario: str = "happy_path") -> None:
    cell = make_cell(make_config(make_run(), make_model(name)), scenario, scenario_version=version)
    make_trials(cell, **{"pass": passed, "fail": 100 - passed})


def test_summary_row_of_an_earlier_version_is_not_ranked() -> None:
    """Version 1 is easier: its row must not be the best, nor overlap with it, nor count as clearing the target."""
    for name, version, passed in (("a", 1, 100), ("b", 2, 70), ("c", 2, 30), ("d", 10, 0)):
        in_version(name, version, passed, scenario="other" if name == "d" else "happy_path")
    matrix = get_matrix(REAL)
    assert {row.model: row.ranked for row in matrix.rows} == {"a": False, "b": True, "c": True, "d": True}
    summary = matrix.summary
    assert (summary.ranked, summary.clears, summary.undecided, summary.below, summary.overlapping) == (3, 0, 0, 3, 0)
    assert summary.trials == 400
    (said,) = [warning for warning in matrix.warnings if warning.startswith("Not ranked")]
    assert said.startswith("Not ranked: 1 row with happy_path version 1, since other rows have a newer version.")


def test_summary_newer_version_without_a_trial_unranks_nothing() -> None:
    in_version("a", 1, 50)
    tried_later = make_cell(make_config(make_run(), make_model("b")), scenario_version=2)
    make_trials(tried_later, queued=3, cancelled=1)
    matrix = get_matrix(REAL)
    assert [(row.model, row.ranked) for row in matrix.rows] == [("a", True), ("b", False)]
    assert matrix.summary.ranked == 1
    assert not any(warning.startswith("Not ranked") for warning in matrix.warnings)


def test_summary_published_and_drawn_versions_unrank_no_other_kind() -> None:
    in_version("a", 1, 50)
    make_trials(make_cell(make_config(make_run(instance_kind="drawn")), scenario_version=2), **{"pass": 9})
    assert [row.ranked for row in get_matrix(REAL).rows] == [True, True]


def test_summary_control_is_of_the_newest_version_alone() -> None:
    for name, version, passed in (("a", 1, 0), ("b", 2, 90)):
        in_version(name, 1, 50)
        in_version(name, version, passed, scenario="chat_only")
    matrix = get_matrix(REAL)
    assert (matrix.summary.control_success.k, matrix.summary.control_success.n) == (90, 100)
    assert matrix.summary.ranked == 2
    assert any(said.startswith("Not counted in the control") for said in matrix.warnings)
    unfolded = get_matrix(replace(REAL, metric="control"))
    assert {row.model: row.ranked for row in unfolded.rows} == {"a": False, "b": True}


def test_the_same_model_at_two_providers_is_two_rows_grouped_by_provider() -> None:
    run = make_run()
    for name in ("One", "Two"):
        tried(make_config(run, make_model("same", provider=make_provider(name))), **{"pass": 1})
    assert [name for name, _ in get_matrix(REAL).rows_by_provider] == ["One", "Two"]


def test_published_figures_stand_beside_the_row_they_are_about() -> None:
    make_published_snapshot(("vendor/model-a", "default", 36, 10))
    tried(make_config(make_run()), **{"pass": 1})
    assert get_matrix(REAL).rows[0].published == "36/40"


def test_where_it_failed_is_named_most_first() -> None:
    config = make_config(make_run())
    for scenario, failed in (("happy_path", 1), ("long_arguments_guard", 4), ("type_error_recovery", 2)):
        tried(config, scenario, **{"fail": failed})
    assert get_matrix(REAL).rows[0].failure_summary == "long_arguments_guard 4, type_error_recovery 2, 1 elsewhere"


def test_the_number_of_queries_does_not_grow_with_runs_or_trials() -> None:
    counts = []
    for _ in range(2):
        for name in ("a", "b", "c"):
            tried(make_config(make_run(), make_model(name)), **{"pass": 3, "fail": 2})
        with CaptureQueriesContext(connection) as seen:
            get_matrix(REAL)
        counts.append(len(seen))
    assert counts == [4, 4]
    assert not any("lab_trial" in query["sql"] or "lab_step" in query["sql"] for query in seen.captured_queries)


def test_prompt_versions_are_pooled_split_or_chosen() -> None:
    config = make_config(make_run())
    cell = make_cell(config)
    for version, outcome in (("1", "pass"), ("1", "pass")):
        make_trial(cell, outcome, prompt_version=version, calling_turns=1)
    make_trial(make_cell(config), "fail", prompt_version="2", calling_turns=2, parse_error_turns=1)
    recompute_stale_cells()
    assert len(get_matrix(REAL).rows) == 1
    assert get_matrix(REAL).prompts == ("1", "2")
    split = get_matrix(MatrixQuery(scope="real", metric="parse", prompt="each")).rows
    assert [(row.prompt, row.rate.k, row.rate.n) for row in split if row.rate] == [("1", 0, 2), ("2", 1, 2)]
    assert len({row.key for row in split}) == 2
    assert get_trials(split[1].trials).total == 1
    only = get_matrix(MatrixQuery(scope="real", prompt="2"))
    assert (only.rows[0].tally.failed, only.rows[0].tally.passed) == (1, 0)


def test_when_to_call_is_judged_with_the_controls_beside() -> None:
    config = make_config(make_run())
    for scenario, expected in (("happy_path", True), ("chat_plain", False)):
        control = not expected
        cell = make_cell(config, scenario, control=control, scenario_group="control" if control else "tools")
        make_trial(cell, call_expected=expected)
    recompute_stale_cells()
    rate = get_matrix(MatrixQuery(scope="real", metric="trigger_precision")).rows[0].rate
    assert rate is not None
    assert (rate.k, rate.n) == (1, 2)
