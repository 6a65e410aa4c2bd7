"""The grid: pivots, verdicts of cells, sorting, and links that select exactly the trials of a cell."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial, make_trials
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Provider, Run, RunConfig
from toolbench.lab.results.matrix import grid as grid_module
from toolbench.lab.results.matrix.grid import build_grid, get_grid_with_causes
from toolbench.lab.results.matrix.grid_types import Grid
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials

pytestmark = pytest.mark.django_db


def read_grid(query: str = "") -> Grid:
    recompute_all_stale()
    return build_grid(get_matrix(MatrixQuery.from_query(QueryDict(f"scope=real&{query}"))))


def make_row(run: Run, name: str, profile: str = "default", **passed_by_scenario: int) -> RunConfig:
    """Make a configuration with ten trials for each scenario."""
    config = make_config(run, make_model(name), profile=profile)
    for scenario, passed in passed_by_scenario.items():
        make_trials(make_cell(config, scenario=scenario), **{"pass": passed, "fail": 10 - passed})
    return config


def list_states(grid: Grid) -> list[list[str]]:
    return [[cell.state if cell else "" for cell in row.cells] for row in grid.rows]


def test_scenario_grid_has_a_cell_for_each_planned_pair() -> None:
    run = make_run()
    make_row(run, "alpha", happy_path=10, type_error_recovery=3)
    make_row(run, "beta", happy_path=8)
    grid = read_grid()
    assert [column.key for column in grid.columns] == ["happy_path", "type_error_recovery"]
    assert [row.label for row in grid.rows] == ["alpha", "beta"]
    assert list_states(grid) == [["clean", "below"], ["open", ""]]
    below = grid.rows[0].cells[1]
    assert below is not None
    assert below.tint_percent == 40
    assert grid.overall is not None
    assert grid.overall.rate is not None
    assert (grid.overall.rate.k, grid.overall.rate.n) == (21, 30)


@pytest.mark.parametrize("view", ["", "profile", "strategy"])
def test_grid_cell_links_to_exactly_its_trials(view: str) -> None:
    run = make_run()
    make_row(run, "alpha", happy_path=10, type_error_recovery=3)
    make_row(run, "alpha", "creative", happy_path=7)
    make_row(run, "beta", happy_path=8)
    grid = read_grid(f"view={view}")
    cells = [cell for row in grid.rows for cell in (*row.cells, row.overall) if cell]
    assert len(cells) > 3
    for cell in cells:
        found = filter_trials(TrialFilter.from_query(QueryDict(cell.trials_query)))
        assert cell.rate is not None
        assert found.count() == cell.rate.n
        assert found.filter(outcome="pass").count() == cell.rate.k


def test_profile_grid_pools_scenarios_and_puts_the_default_first() -> None:
    run = make_run()
    make_row(run, "alpha", "creative", happy_path=7, type_error_recovery=7)
    make_row(run, "alpha", happy_path=10)
    grid = read_grid("view=profile")
    assert [column.key for column in grid.columns] == ["default", "creative"]
    (row,) = grid.rows
    assert [(cell.rate.k, cell.rate.n) for cell in row.cells if cell and cell.rate] == [(10, 10), (14, 20)]
    assert row.overall.rate is not None
    assert (row.overall.rate.k, row.overall.rate.n) == (24, 30)


def test_scenario_grid_puts_the_default_profile_of_a_model_first() -> None:
    run = make_run()
    for profile in ("creative", "default", "alpha_precise"):
        make_row(run, "alpha", profile, happy_path=7)
    rows = read_grid().rows
    assert [row.note for row in rows] == ["default", "precise", "creative"]
    assert [row.is_repeated for row in rows] == [False, True, True]
    assert rows[1].title.endswith(", alpha_precise")


@pytest.mark.parametrize("view", ["", "profile", "strategy"])
def test_grid_totals_add_up_newest_versions_only(view: str) -> None:
    for name, version, counts in (("alpha", 1, {"pass": 5}), ("beta", 2, {"pass": 2, "fail": 1})):
        make_trials(make_cell(make_config(make_run(), make_model(name)), scenario_version=version), **counts)
    grid = read_grid(f"view={view}")
    totals = [grid.overall, *(column.total for column in grid.columns)]
    assert [(total.rate.k, total.rate.n) for total in totals if total and total.rate] == [(2, 3), (2, 3)]


def test_profile_grid_row_adds_up_newest_versions_only() -> None:
    for profile, version, counts in (("default", 1, {"pass": 5}), ("creative", 2, {"pass": 2, "fail": 1})):
        make_trials(make_cell(make_config(make_run(), profile=profile), scenario_version=version), **counts)
    (row,) = read_grid("view=profile").rows
    assert row.overall.rate is not None
    assert (row.overall.rate.k, row.overall.rate.n, row.overall.scenarios) == (2, 3, (("happy_path", 2),))
    assert filter_trials(TrialFilter.from_query(QueryDict(row.overall.trials_query))).count() == 3


def test_profile_grid_of_controls_has_no_figures_of_tool_scenarios() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 2})
    make_trials(make_cell(config, "chat_only"), **{"pass": 1})
    (row,) = read_grid("view=profile&metric=control").rows
    for cell in (*row.cells, row.overall):
        assert cell is not None
        assert (cell.scenarios, len(cell.times.list_durations())) == ((("chat_only", 1),), 1)


@pytest.mark.parametrize("view", ["", "profile", "strategy"])
@pytest.mark.parametrize(("metric", "counts"), [("control", (3, 4)), ("trigger_precision", (2, 3)), ("given", (2, 2))])
def test_grid_totals_count_controls_as_rows_do(view: str, metric: str, counts: tuple[int, int]) -> None:
    config = make_config(make_run())
    for _ in range(2):
        make_trial(make_cell(config), call_expected=True)
    cell = make_cell(config, "chat_only")
    make_trial(cell, call_expected=False)
    for outcome in ("pass", "pass", "fail"):
        make_trial(cell, outcome, call_expected=False, calling_answers=0)
    grid = read_grid(f"view={view}&metric={metric}")
    assert grid.overall is not None
    assert grid.overall.rate is not None
    assert (grid.overall.rate.k, grid.overall.rate.n) == counts
    rate = grid.rows[0].overall.rate
    if view != "strategy":
        assert rate == replace(grid.overall.rate, target=rate.target if rate else None)


@pytest.mark.parametrize("view", ["", "profile"])
@pytest.mark.parametrize(("metric", "count"), [("given", 2), ("control", 4)])
def test_grid_row_links_leave_out_or_select_controls_among_test_cases(view: str, metric: str, count: int) -> None:
    config = make_config(make_run())
    make_trials(make_cell(config, "own_task", scenario_group="own"), **{"pass": 2})
    make_trials(make_cell(config, "own_control", scenario_group="own", control=True), **{"pass": 3})
    make_trials(make_cell(config, "chat_only"), **{"pass": 1})
    (row,) = read_grid(f"view={view}&metric={metric}").rows
    for cell in (row.overall, *(cell for cell in row.cells if cell and cell.has_value)):
        found = filter_trials(TrialFilter.from_query(QueryDict(cell.trials_query)))
        assert found.count() == cell.tally.trial_count
    assert row.overall.tally.trial_count == count
    overall = TrialFilter.from_query(QueryDict(row.overall.trials_query))
    assert (overall.scenario, overall.chosen.scenarios, overall.without) == ("", (), "")


def test_grid_has_no_totals_over_drawn_instances_and_published_wording() -> None:
    for kind in ("drawn", "parity"):
        make_trials(make_cell(make_config(make_run(instance_kind=kind))), **{"pass": 5})
    grid = read_grid()
    assert (grid.overall, [column.total for column in grid.columns]) == (None, [None])
    assert {row.note for row in grid.rows} == {"default · drawn", "default · published wording"}


def test_strategy_grid_has_a_row_for_each_kind_of_instance() -> None:
    for kind, counts in (("drawn", {"pass": 5}), ("parity", {"pass": 2, "fail": 1})):
        make_trials(make_cell(make_config(make_run(instance_kind=kind))), **counts)
    grid = read_grid("view=strategy")
    assert [row.note for row in grid.rows] == ["drawn", "published wording"]
    for row, expected in zip(grid.rows, ((5, 5), (2, 3)), strict=True):
        (cell,) = row.cells
        assert cell is not None
        assert cell.rate is not None
        assert (cell.rate.k, cell.rate.n) == expected
        assert filter_trials(TrialFilter.from_query(QueryDict(cell.trials_query))).count() == cell.rate.n


@pytest.mark.parametrize("metric", ["delivered", "schema"])
def test_scenario_grid_control_column_totals_its_cells(metric: str) -> None:
    config = make_row(make_run(), "alpha", happy_path=10)
    make_trials(make_cell(config, scenario="chat_only"), **{"pass": 3, "fail": 1, "infra": 2})
    grid = read_grid(f"metric={metric}")
    cell, total = grid.rows[0].cells[1], grid.columns[1].total
    rates = [cell.rate if cell else None, total.rate if total else None]
    assert [(rate.k, rate.n) for rate in rates if rate] == [(3, 4), (3, 4)]


def test_strategy_grid_has_one_row_for_each_scenario() -> None:
    run = make_run()
    make_row(run, "alpha", happy_path=10, type_error_recovery=3)
    make_row(run, "beta", happy_path=8)
    grid = read_grid("view=strategy")
    assert [column.group for column in grid.columns] == ["Strategy"]
    assert [row.label for row in grid.rows] == ["happy_path", "type_error_recovery"]
    (cell,) = grid.rows[0].cells
    assert cell is not None
    assert cell.rate is not None
    assert (cell.rate.k, cell.rate.n) == (18, 20)


@pytest.mark.parametrize(
    ("sort", "labels"),
    [
        ("overall", ["beta", "alpha", "gamma"]),
        ("-overall", ["gamma", "alpha", "beta"]),
        ("type_error_recovery", ["gamma", "alpha", "beta"]),
        ("-type_error_recovery", ["alpha", "gamma", "beta"]),
        ("cost", ["alpha", "beta", "gamma"]),
        ("given", ["beta", "alpha", "gamma"]),
        ("-given", ["gamma", "alpha", "beta"]),
        ("nonsense", ["alpha", "beta", "gamma"]),
    ],
)
def test_grid_rows_without_a_value_are_sorted_last_both_ways(sort: str, labels: list[str]) -> None:
    run = make_run()
    make_row(run, "alpha", happy_path=9, type_error_recovery=3)
    make_row(run, "beta", happy_path=8)
    make_row(run, "gamma", happy_path=1, type_error_recovery=5)
    grid = read_grid(f"sort={sort}")
    assert [row.label for row in grid.rows] == labels
    assert {len(row.figures) for row in grid.rows} == {len(grid.row_columns)}


def test_grid_cell_without_verdict_has_a_state_that_says_why() -> None:
    run = make_run()
    config = make_config(run, make_model("alpha"))
    make_trials(make_cell(config, scenario="happy_path"), **{"pass": 4})
    make_trials(make_cell(config, scenario="type_error_recovery"), na=3)
    make_trials(make_cell(config, scenario="long_arguments_guard"), infra=3)
    make_trials(make_cell(config, scenario="missing_workspace_id"), queued=3)
    make_trials(make_cell(config, scenario="chat_only", control=True), **{"pass": 5})
    grid = read_grid()
    states = dict(zip((column.key for column in grid.columns), list_states(grid)[0], strict=True))
    assert states == {
        "happy_path": "few",
        "type_error_recovery": "na",
        "long_arguments_guard": "unknown",
        "missing_workspace_id": "waiting",
        "chat_only": "control",
    }
    assert grid.columns[-1].is_control


@pytest.mark.parametrize("metric", ["p95", "tokens", "cost", "pass_hat_3", "parse"])
@pytest.mark.parametrize("view", ["", "profile", "strategy"])
def test_grid_of_metric_without_target_has_plain_or_unknown_cells(metric: str, view: str) -> None:
    run = make_run()
    make_row(run, "alpha", happy_path=9, type_error_recovery=3)
    states = {state for row in list_states(read_grid(f"metric={metric}&view={view}")) for state in row}
    assert states <= {"plain", "unknown"}


def test_grid_causes_are_read_only_below_max_cause_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "fail", cause="wrong_value")
    recompute_all_stale()
    matrix = get_matrix(MatrixQuery.from_query(QueryDict("scope=real")))
    key = cell.config_id, (cell.scenario, cell.scenario_version)
    assert get_grid_with_causes(matrix).causes == {key: {"wrong_value": 1}}
    monkeypatch.setattr(grid_module, "MAX_CAUSE_TRIALS", 0)
    assert get_grid_with_causes(matrix).causes == {}


def test_grid_rows_say_simulated_only_beside_rows_of_real_models() -> None:
    simulated = make_run(simulated=True)
    perfect = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    make_trials(make_cell(make_config(simulated, perfect)), **{"pass": 1})
    (row,) = read_grid(f"scope=runs&run={simulated.pk}").rows
    assert "simulated" not in row.note
    real = make_run()
    make_row(real, "alpha", happy_path=1)
    notes = {row.label: row.note for row in read_grid(f"scope=runs&run={simulated.pk}&run={real.pk}").rows}
    assert "simulated" in notes["perfect"]
    assert "simulated" not in notes["alpha"]
