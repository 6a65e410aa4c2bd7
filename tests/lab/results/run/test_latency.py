"""Latency shows every quantile from one answer on, with open bounds where there are too few."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.models import Run
from toolbench.lab.results.run import latency
from toolbench.lab.results.run.latency import get_latency

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("count", "open_bounds"), [(1, 3), (71, 2), (72, 1)])
def test_latency_row_has_every_quantile_from_one_answer(count: int, open_bounds: int) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": count})
    (row,) = get_latency(run.pk).rows
    times = [1000.0 + 10 * index for index in range(1, count + 1)]
    assert (row.p50, row.p95, row.p99) == tuple(compute_quantile(times, q) for q in (0.5, 0.95, 0.99))
    assert sum(item.is_open for item in (row.p50, row.p95, row.p99)) == open_bounds
    assert row.scenarios == ()


def test_latency_row_has_quantiles_by_scenario() -> None:
    run = make_run()
    config = make_config(run)
    for scenario, time in (("happy_path", 100.0), ("type_error_recovery", 900.0)):
        make_trial(make_cell(config, scenario), duration_ms=time)
    (row,) = get_latency(run.pk).rows
    found = {
        scenario.scenario: (scenario.p50.value, scenario.p95.value, scenario.p99.value, scenario.p50.n)
        for scenario in row.scenarios
    }
    assert found == {"happy_path": (100.0, 100.0, 100.0, 1), "type_error_recovery": (900.0, 900.0, 900.0, 1)}


def test_infrastructure_is_left_out() -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 2, "infra": 5})
    assert get_latency(run.pk).rows[0].n == 2


def test_our_own_deadline_is_no_latency() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, duration_ms=1000.0)
    make_trial(cell, "fail", duration_ms=600_000.0, end="DEADLINE_EXCEEDED")
    assert get_latency(cell.run_id).rows[0].times == (1000.0,)


def test_groups_of_scenarios_are_timed_apart_and_controls_last() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config, "chat_only"), duration_ms=100.0)
    make_trial(make_cell(config, "restraint_plain", scenario_group="restraint"), duration_ms=200.0)
    make_trial(make_cell(config), duration_ms=900.0)
    page = get_latency(config.run_id, "trial", "nonsense")
    assert (page.groups, page.group, page.rows[0].times) == (("tools", "restraint", "control"), "tools", (900.0,))
    assert get_latency(config.run_id, "trial", "restraint").rows[0].times == (200.0,)


def test_a_lagging_client_is_flagged_from_the_same_lag_on_as_in_the_cells() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, client_lag_ms=80.0)
    recompute_stale_cells()
    cell.refresh_from_db()
    assert get_latency(cell.run_id).rows[0].saturated == cell.saturated == 1


def test_without_a_choice_the_newest_real_run_is_shown() -> None:
    real = make_run()
    make_run(simulated=True)
    assert get_latency().run == real


def test_a_run_is_shown_and_offered_however_many_are_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "MAX_RUNS", 2)
    old, *newer = [make_run() for _ in range(4)]
    page = get_latency(old.pk)
    assert (page.run, page.runs) == (old, (old, *reversed(newer[1:])))
    Run.objects.exclude(pk=old.pk).update(simulated=True)
    assert get_latency().run == old


def test_an_unknown_metric_or_run_shows_the_page_all_the_same() -> None:
    assert get_latency(999, "nonsense").rows == ()
