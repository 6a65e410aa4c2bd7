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
from toolbench.lab.results.run_choices import ADDED_MANUALLY
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db
REAL = MatrixQuery(scope="real")


def make_tried_cell(config: RunConfig, scenario: str = "happy_path", /, **counts: int) -> Cell:
    cell = make_cell(config, scenario, **({"scenario_group": "weather"} if scenario == "weather" else {}))
    make_trials(cell, **counts)
    return cell


def test_matrix_row_infra_errors_count_only_in_end_to_end_success() -> None:
    make_tried_cell(make_config(make_run()), **{"pass": 7, "fail": 1, "infra": 2})
    answered = get_matrix(REAL).rows[0].rate
    delivered = get_matrix(MatrixQuery(scope="real", metric="delivered")).rows[0].rate
    assert answered is not None
    assert delivered is not None
    assert (answered.k, answered.n, delivered.k, delivered.n) == (7, 8, 7, 10)


def test_matrix_offers_named_runs_of_every_scope() -> None:
    runs = [make_run(simulated=True), make_run(imported=True), make_run(purpose=Run.PLAYGROUND)]
    make_run(simulated=True)
    named = get_matrix(MatrixQuery(scope="runs", runs=tuple(run.pk for run in runs)))
    assert {run.pk for run in named.runs} == {run.pk for run in runs}


def test_matrix_row_tool_success_excludes_controls() -> None:
    config = make_config(make_run())
    make_tried_cell(config, **{"pass": 10})
    make_tried_cell(config, "chat_only", **{"fail": 10})
    row = get_matrix(REAL).rows[0]
    assert row.rate is not None
    assert (row.rate.k, row.rate.n) == (10, 10)
    control = get_matrix(MatrixQuery(scope="real", metric="control")).rows[0].rate
    assert control is not None
    assert (control.k, control.n, control.target) == (0, 10, None)


def test_matrix_row_pools_runs_and_names_differing_settings() -> None:
    for hash_ in ("aaa", "bbb"):
        make_tried_cell(make_config(make_run(), policy_hash=hash_), **{"pass": 5})
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


def test_matrix_warns_that_manual_trials_need_confirmation() -> None:
    make_trial(make_cell(make_config(make_run())), added_by_hand=True)
    recompute_stale_cells()
    assert f"{ADDED_MANUALLY} Their number: 1." in get_matrix(REAL).warnings


def count_row_trials(query: MatrixQuery) -> list[tuple[int, int]]:
    """Return for each row how many trials it counts and how many its link lists."""
    matrix = get_matrix(query)
    counted = [row.control if matrix.metric.of_control else row.tally for row in matrix.rows]
    listed = [get_trials(TrialFilter.from_query(QueryDict(row.trials_query))).total for row in matrix.rows]
    return [(tally.trial_count, total) for tally, total in zip(counted, listed, strict=True)]


@pytest.mark.parametrize("metric", ["given", "control"])
def test_matrix_row_links_to_exactly_the_trials_it_counts(metric: str) -> None:
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
            make_tried_cell(config, **{"pass": place, "fail": number, "queued": 1})
            make_tried_cell(config, "weather", **{"fail": 2})
            make_tried_cell(config, "chat_only", **{"pass": 3 + place})
    for query in (MatrixQuery(scope="real"), MatrixQuery(scope="demo"), MatrixQuery(scope="real", group="weather")):
        assert all(counted == listed for counted, listed in count_row_trials(replace(query, metric=metric)))
    named_runs = MatrixQuery(scope="runs", runs=(make_config(run).run_id, other.pk), metric=metric)
    assert len(count_row_trials(named_runs)) == 6
    assert all(counted == listed for counted, listed in count_row_trials(named_runs))


def test_matrix_rows_differ_by_strategy_method_and_examples() -> None:
    run = make_run()
    for name, value in (
        ("strategy", "production"),
        ("strategy", "raw"),
        ("method", "constrained"),
        ("examples", "w-1"),
    ):
        make_tried_cell(make_config(run, None, **{name: value}), **{"pass": 1})
    matrix = get_matrix(REAL)
    assert len(matrix.rows) == 4
    assert set(matrix.differing_settings) == {"strategy", "method", "examples"}


def test_matrix_common_settings_name_strategy_and_instances_apart() -> None:
    make_tried_cell(make_config(make_run(), strategy="parity"), **{"pass": 1})
    settings = get_matrix(REAL).common_settings
    assert (settings["strategy"], settings["instances"]) == ("parity", "published wording")


def test_matrix_row_pools_no_published_and_drawn_instances() -> None:
    for kind in ("parity", "drawn"):
        make_tried_cell(make_config(make_run(instance_kind=kind)), **{"pass": 1})
    assert len(get_matrix(REAL).rows) == 2


def test_matrix_default_scope_excludes_simulated_and_deleted_runs() -> None:
    make_tried_cell(make_config(make_run(simulated=True)), **{"pass": 3})
    deleted = make_config(make_run())
    make_tried_cell(deleted, **{"pass": 3})
    Run.objects.filter(pk=deleted.run_id).update(deleted_at="2026-01-01T00:00Z")
    assert get_matrix(REAL).rows == ()
    demo = get_matrix(MatrixQuery(scope="demo")).rows
    assert [row.simulated for row in demo] == [True]


def test_choose_scope_without_own_runs_is_published() -> None:
    assert choose_scope(MatrixQuery()).scope == "published"
    make_tried_cell(make_config(make_run(simulated=True)), **{"pass": 1})
    assert choose_scope(MatrixQuery()).scope == "published"
    make_tried_cell(make_config(make_run()), **{"pass": 1})
    assert choose_scope(MatrixQuery()).scope == "real"


def test_matrix_never_pools_scenario_groups() -> None:
    config = make_config(make_run())
    make_tried_cell(config, **{"pass": 2})
    make_tried_cell(config, "weather", **{"fail": 5})
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
    make_tried_cell(config, **{"pass": 1})
    assert render_quantile(get_matrix(REAL).rows[0].times.p95) == "1.0 s [open, n = 1]"
    make_tried_cell(config, "type_error_recovery", **{"infra": 3})
    assert render_quantile(get_matrix(REAL).rows[0].times.p95) == "1.0 s [open, n = 1]"


def test_matrix_row_not_applicable_trials_have_no_rate() -> None:
    make_tried_cell(make_config(make_run(), tool_use_mode="disabled"), **{"na": 10})
    row = get_matrix(REAL).rows[0]
    assert not row.applicable
    assert row.rate is not None
    assert row.rate.n == 0
    assert get_matrix(REAL).summary.below == 0


def make_equal_answers(cell: Cell, count: int = 10) -> Cell:
    names = ("calling_turns", "answered_turns", "final_answers", "failed_calls", "arguments_asked")
    counts: dict[str, Any] = dict.fromkeys(names, 1)
    for _ in range(count):
        make_trial(cell, answer_hash="the same", call_expected=True, **counts)
    recompute_stale_cells()
    return cell


RATES = [name for name, metric in METRICS.items() if metric.rate and not metric.of_control]


@pytest.mark.parametrize("metric", RATES)
def test_matrix_rate_of_deterministic_repeats_withholds_interval(metric: str) -> None:
    make_equal_answers(make_cell(make_config(make_run()), deterministic=True))
    rate = get_matrix(MatrixQuery(scope="real", metric=metric)).rows[0].rate
    assert rate is not None
    assert rate.n
    assert (rate.withheld, rate.target_status, rate.distinct) == (True, "open", 1)


def test_matrix_rate_of_sampled_equal_answers_keeps_interval() -> None:
    config = make_config(make_run())
    make_equal_answers(make_cell(config))
    make_trials(make_cell(config, "type_error_recovery", deterministic=True), **{"pass": 3})
    rate = get_matrix(REAL).rows[0].rate
    assert rate is not None
    assert not rate.withheld


def test_matrix_summary_counts_rows_that_overlap_the_best() -> None:
    run = make_run()
    for name, passed in (("a", 10), ("b", 9)):
        make_tried_cell(make_config(run, make_model(name)), **{"pass": passed, "fail": 10 - passed})
    assert get_matrix(REAL).summary.overlapping == 1


def make_versioned_cell(name: str, version: int, passed: int, *, scenario: str = "happy_path") -> None:
    cell = make_cell(make_config(make_run(), make_model(name)), scenario, scenario_version=version)
    make_trials(cell, **{"pass": passed, "fail": 100 - passed})


def test_matrix_summary_does_not_rank_an_older_scenario_version() -> None:
    """Version 1 is easier: its row must not be the best, nor overlap with it, nor count as clearing the target."""
    for name, version, passed in (("a", 1, 100), ("b", 2, 70), ("c", 2, 30), ("d", 10, 0)):
        make_versioned_cell(name, version, passed, scenario="other" if name == "d" else "happy_path")
    matrix = get_matrix(REAL)
    assert {row.model: row.ranked for row in matrix.rows} == {"a": False, "b": True, "c": True, "d": True}
    summary = matrix.summary
    assert (summary.ranked, summary.clears, summary.undecided, summary.below, summary.overlapping) == (3, 0, 0, 3, 0)
    assert summary.trials == 400
    (not_ranked,) = [warning for warning in matrix.warnings if "not ranked" in warning]
    assert not_ranked.startswith("1 row is not ranked, since other rows have newer versions than happy_path version 1.")


def test_matrix_summary_newer_version_without_trials_unranks_no_row() -> None:
    make_versioned_cell("a", 1, 50)
    newer_cell = make_cell(make_config(make_run(), make_model("b")), scenario_version=2)
    make_trials(newer_cell, queued=3, cancelled=1)
    matrix = get_matrix(REAL)
    assert [(row.model, row.ranked) for row in matrix.rows] == [("a", True), ("b", False)]
    assert matrix.summary.ranked == 1
    assert not any("not ranked" in warning for warning in matrix.warnings)


def test_matrix_summary_drawn_version_unranks_no_published_wording() -> None:
    make_versioned_cell("a", 1, 50)
    make_trials(make_cell(make_config(make_run(instance_kind="drawn")), scenario_version=2), **{"pass": 9})
    assert [row.ranked for row in get_matrix(REAL).rows] == [True, True]


def test_matrix_summary_control_counts_only_the_newest_version() -> None:
    for name, version, passed in (("a", 1, 0), ("b", 2, 90)):
        make_versioned_cell(name, 1, 50)
        make_versioned_cell(name, version, passed, scenario="chat_only")
    matrix = get_matrix(REAL)
    assert (matrix.summary.control_success.k, matrix.summary.control_success.n) == (90, 100)
    assert matrix.summary.ranked == 2
    assert any(warning.startswith("The control does not count") for warning in matrix.warnings)
    controls = get_matrix(replace(REAL, metric="control"))
    assert {row.model: row.ranked for row in controls.rows} == {"a": False, "b": True}


def test_matrix_groups_a_model_at_two_providers_by_provider() -> None:
    run = make_run()
    for name in ("One", "Two"):
        make_tried_cell(make_config(run, make_model("same", provider=make_provider(name))), **{"pass": 1})
    assert [name for name, _ in get_matrix(REAL).rows_by_provider] == ["One", "Two"]


def test_matrix_row_has_the_published_figure_of_its_configuration() -> None:
    make_published_snapshot(("vendor/model-a", "default", 36, 10), ("vendor/model-b", "default", 0, 10))
    for name in ("vendor/model-a", "vendor/model-b", "vendor/model-c"):
        make_tried_cell(make_config(make_run(), make_model(name)), **{"pass": 1})
    assert [row.published for row in get_matrix(REAL).rows] == ["36/40", "with tools off", ""]


def test_matrix_row_failure_summary_names_most_failures_first() -> None:
    config = make_config(make_run())
    for scenario, failed in (("happy_path", 1), ("long_arguments_guard", 4), ("type_error_recovery", 2)):
        make_tried_cell(config, scenario, **{"fail": failed})
    assert get_matrix(REAL).rows[0].failure_summary == "long_arguments_guard 4, type_error_recovery 2, 1 elsewhere"


def test_matrix_number_of_queries_does_not_grow() -> None:
    counts = []
    for _ in range(2):
        for name in ("a", "b", "c"):
            make_tried_cell(make_config(make_run(), make_model(name)), **{"pass": 3, "fail": 2})
        with CaptureQueriesContext(connection) as queries:
            get_matrix(REAL)
        counts.append(len(queries))
    assert counts == [4, 4]
    assert not any("lab_trial" in query["sql"] or "lab_step" in query["sql"] for query in queries.captured_queries)


def test_matrix_rows_are_pooled_split_or_filtered_by_prompt_version() -> None:
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
    assert get_trials(split[1].trial_filter).total == 1
    filtered = get_matrix(MatrixQuery(scope="real", prompt="2"))
    assert (filtered.rows[0].tally.failed, filtered.rows[0].tally.passed) == (1, 0)


def test_matrix_trigger_precision_includes_controls() -> None:
    config = make_config(make_run())
    for scenario, expected in (("happy_path", True), ("chat_plain", False)):
        control = not expected
        cell = make_cell(config, scenario, control=control, scenario_group="control" if control else "tools")
        make_trial(cell, call_expected=expected)
    recompute_stale_cells()
    rate = get_matrix(MatrixQuery(scope="real", metric="trigger_precision")).rows[0].rate
    assert rate is not None
    assert (rate.k, rate.n) == (1, 2)
