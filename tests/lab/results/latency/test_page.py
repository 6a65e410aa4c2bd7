"""Latency page: quantiles with open bounds if there are few answers, groups, pooled runs and filters."""

from typing import Any

import pytest
from django.http import QueryDict

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.latency import page as latency_page
from toolbench.lab.results.latency.page import LatencyPage, LatencyRow, get_latency
from toolbench.lab.results.latency.query import LatencyQuery
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def read_page(**fields: Any) -> LatencyPage:
    recompute_stale_cells()
    return get_latency(LatencyQuery(**fields))


def read_row(**fields: Any) -> LatencyRow:
    (row,) = read_page(**fields).rows
    return row


@pytest.mark.parametrize(("count", "open_bounds"), [(1, 3), (71, 2), (72, 1)])
def test_latency_row_has_every_quantile_from_one_answer(count: int, open_bounds: int) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": count})
    found = read_row(runs=(run.pk,)).summary
    times = [1000.0 + 10 * index for index in range(1, count + 1)]
    assert (found.p50, found.p95, found.p99) == tuple(compute_quantile(times, q) for q in (0.5, 0.95, 0.99))
    assert sum(item.is_open for item in (found.p50, found.p95, found.p99)) == open_bounds


def test_latency_row_has_quantiles_by_scenario() -> None:
    config = make_config(make_run())
    for scenario, time in (("happy_path", 100.0), ("type_error_recovery", 900.0)):
        make_trial(make_cell(config, scenario), duration_ms=time)
    found = {name: (summary.p50.value, summary.p99.value, summary.n) for name, summary in read_row().scenarios.items()}
    assert found == {"happy_path": (100.0, 100.0, 1), "type_error_recovery": (900.0, 900.0, 1)}


def test_latency_row_excludes_infrastructure_errors() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2, "infra": 5})
    row = read_row()
    assert (row.summary.n, row.counts.infra) == (2, 5)


def test_latency_row_excludes_trials_over_the_deadline() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, duration_ms=1000.0)
    make_trial(cell, "fail", duration_ms=600_000.0, end="DEADLINE_EXCEEDED")
    row = read_row()
    assert (list(row.times), row.counts.deadline_failed) == ([1000.0], 1)
    assert list(read_row(metric="working").times) == [1000.0]


def test_latency_page_separates_groups_with_controls_last() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config, "chat_only"), duration_ms=100.0)
    make_trial(make_cell(config, "restraint_plain", scenario_group="restraint"), duration_ms=200.0)
    make_trial(make_cell(config), duration_ms=900.0)
    page = read_page(group="nonsense")
    assert (page.groups, page.group) == (("tools", "restraint", "control"), "tools")
    assert [list(read_row(group=name).times) for name in page.groups] == [[900.0], [200.0], [100.0]]


def test_latency_page_pools_runs_of_one_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for time in (100.0, 300.0):
        make_trial(make_cell(make_config(make_run(), make_model("a"))), duration_ms=time, model_ms=time / 2)
    make_trial(make_cell(make_config(make_run(), make_model("b"))), duration_ms=200.0, model_ms=50.0)
    make_trial(make_cell(make_config(make_run(simulated=True))), duration_ms=1.0)
    make_trial(make_cell(make_config(make_run(imported=True))), duration_ms=2.0)
    for refreshed_run_count in (5, 0):  # from cells, then from pools
        assert [(row.model, list(row.times)) for row in read_page().rows] == [("b", [200.0]), ("a", [100.0, 300.0])]
        assert [list(row.times) for row in read_page(metric="model").rows] == [[50.0], [50.0, 150.0]]
        assert list(read_row(scope="demo").times) == [1.0]
        assert list(read_row(scope="imported").times) == [2.0]
        assert [row.model for row in read_page(chosen=ResultFilter(models=("a",))).rows] == ["a"]
        assert refresh_pools() == refreshed_run_count
    monkeypatch.setattr(latency_page, "MAX_ROWS", 1)
    page = get_latency(LatencyQuery(page=2, chosen=ResultFilter(models=("a", "b"))))
    assert (page.pages, page.page, [row.model for row in page.rows]) == (2, 2, ["a"])


def test_latency_row_names_the_provider_if_two_serve_the_model() -> None:
    for provider, model in (("East", "a"), ("West", "a"), ("West", "b")):
        served_model = make_model(model, provider=make_provider(provider))
        make_trial(make_cell(make_config(make_run(), served_model)))
    assert sorted(row.label for row in read_page().rows) == [
        "a · East · default",
        "a · West · default",
        "b · default",
    ]


def test_latency_page_counts_only_the_newest_scenario_version() -> None:
    for version, time in ((1, 100.0), (2, 300.0)):
        make_trial(make_cell(make_config(make_run()), scenario_version=version), duration_ms=time, tool_ms=time)
    assert list(read_row().times) == [300.0]
    assert list(read_row(metric="tool").times) == [300.0]


def test_latency_page_reads_only_the_newest_runs_for_unstored_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for time in (1.0, 2.0, 3.0):
        make_trials(cell := make_cell(make_config(make_run())), **{"pass": 2})
        cell.trials.update(model_ms=time, backoff_ms=time)
    monkeypatch.setattr(latency_page, "MAX_ANSWERS", 3)
    row = read_row(metric="model")
    assert (sorted(row.times), row.is_partial) == ([2.0, 2.0, 3.0, 3.0], True)
    whole = get_latency(LatencyQuery(metric="backoff"), all_rows=True).rows[0]
    assert (len(whole.times), whole.is_partial) == (6, False)
    assert not read_row(metric="trial").is_partial


def test_latency_page_reads_older_runs_until_it_has_enough_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for time in (1.0, 2.0):
        cell = make_cell(make_config(make_run()))
        make_trials(cell, **{"pass": 2})
        make_trial(cell, "fail", end="DEADLINE_EXCEEDED")
        cell.trials.update(model_ms=time)
    monkeypatch.setattr(latency_page, "MAX_ANSWERS", 3)
    row = read_row(metric="model")
    assert (sorted(row.times), row.is_partial) == ([1.0, 1.0, 2.0, 2.0], False)


def test_latency_row_links_to_the_trials_it_counts() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 2, "infra": 1, "fail": 1})
    make_trials(make_cell(config, "chat_only"), **{"pass": 3})
    make_trials(make_cell(config, "chat_only_copy", scenario_group="tools"), **{"pass": 5})
    for group, count in (("tools", 4), ("control", 8)):
        row = read_row(group=group)
        assert row.counts.trial_count == count
        assert get_trials(TrialFilter.from_query(QueryDict(row.trials_query))).total == count


def test_latency_page_of_a_named_run_is_cached_until_it_changes() -> None:
    run = make_run(state=Run.State.FINISHED)
    trial = make_trial(make_cell(make_config(run)), duration_ms=100.0)
    recompute_stale_cells()
    refresh_pools()
    first = read_page(runs=(run.pk,))
    assert read_page(runs=(run.pk,)).rows[0] is first.rows[0]
    type(trial).objects.filter(pk=trial.pk).update(duration_ms=500.0)
    Cell.objects.filter(run=run).update(stale=True)
    assert list(read_row(runs=(run.pk,)).times) == [500.0]


def test_latency_query_names_and_ignores_unreadable_values() -> None:
    query = LatencyQuery.from_query(QueryDict("scope=all&metric=nonsense&run=x&by=y&page=z"))
    assert query.ignored == ("scope", "metric", "by", "run")
    assert (query.query(), query.page, get_latency(query).rows) == ("", 1, ())


def test_latency_query_survives_a_round_trip_through_the_url() -> None:
    text = "scope=demo&metric=model&by=scenario&group=control&model=a&model=b"
    assert LatencyQuery.from_query(QueryDict(text)).query() == text
