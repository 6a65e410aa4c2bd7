"""Panel of a matrix row: its split by scenario and its trials."""

from dataclasses import replace
from typing import Any

import pytest
from django.http import QueryDict
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import RunConfig
from toolbench.lab.results.matrix.details import get_row_details
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db

TRUE_RATES = {
    "tools": {"production": 0.8},
    "long_arguments_guard": {"production": 0.3},
    "control": {"production": 1.0},
    "streamed": {"tools": {"production": 0.5}},
}


@pytest.fixture
def config() -> RunConfig:
    config = make_config(make_run(), true_rates=TRUE_RATES)
    make_trials(make_cell(config), **{"pass": 9, "infra": 1})
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 6, "fail": 4})
    make_trials(make_cell(config, "chat_only"), **{"fail": 10})
    return config


def build_open_query(config: RunConfig) -> MatrixQuery:
    return MatrixQuery(scope="real", cell=str(config.pk))


def test_row_details_list_failed_trials_first_without_controls(config: RunConfig) -> None:
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    assert [trial.outcome for trial in panel.trials] == ["fail"] * 4 + ["infra"] + ["pass"] * 3
    assert {trial.scenario for trial in panel.trials} <= {"happy_path", "long_arguments_guard"}


def test_row_details_exclude_trials_of_other_groups(config: RunConfig) -> None:
    make_trials(make_cell(config, "weather", scenario_group="weather"), **{"fail": 9})
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    assert "weather" not in {trial.scenario for trial in panel.trials}


def test_row_details_exclude_trials_of_scenarios_not_chosen(config: RunConfig) -> None:
    chosen = ResultFilter(scenarios=("happy_path",))
    panel = get_row_details(get_matrix(replace(build_open_query(config), chosen=chosen)))
    assert panel is not None
    assert {trial.scenario for trial in panel.trials} == {"happy_path"}


def test_row_details_of_controls_keep_the_true_rates_of_tools(config: RunConfig) -> None:
    panel = get_row_details(get_matrix(replace(build_open_query(config), metric="control")))
    assert panel is not None
    assert {trial.scenario for trial in panel.trials} == {"chat_only"}
    true_rates = {scenario.scenario: scenario.true_rate for scenario in panel.scenario_details}
    assert true_rates == {"happy_path": 0.8, "long_arguments_guard": 0.3, "chat_only": 1.0}


def test_row_details_scenario_links_to_exactly_its_trials(config: RunConfig) -> None:
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    for split in panel.scenario_details:
        listed = get_trials(TrialFilter.from_query(QueryDict(split.trials_query)))
        assert (listed.total, {row.scenario for row in listed.rows}) == (split.tally.trial_count, {split.scenario})


def test_row_details_show_known_true_rates_by_scenario(config: RunConfig) -> None:
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    assert {
        (scenario.scenario, scenario.answered.k, scenario.answered.n, scenario.true_rate)
        for scenario in panel.scenario_details
    } == {
        ("happy_path", 9, 9, 0.8),
        ("long_arguments_guard", 6, 10, 0.3),
        ("chat_only", 0, 10, 1.0),
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stream": True}, {"happy_path": 0.5, "long_arguments_guard": 0.5, "chat_only": 1.0}),
        ({"method": "constrained"}, {"happy_path": None, "long_arguments_guard": None, "chat_only": None}),
        ({"strategy": "raw"}, {"happy_path": None, "long_arguments_guard": None, "chat_only": None}),
    ],
)
def test_row_details_true_rate_is_that_of_stream_method_and_strategy(
    config: RunConfig, fields: dict[str, Any], expected: dict[str, float | None]
) -> None:
    RunConfig.objects.update(**fields)
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    assert {scenario.scenario: scenario.true_rate for scenario in panel.scenario_details} == expected


def test_row_details_have_answered_and_end_to_end_rate(config: RunConfig) -> None:
    panel = get_row_details(get_matrix(build_open_query(config)))
    assert panel is not None
    assert (panel.answered.n, panel.delivered.n) == (19, 20)


def test_row_details_of_an_unknown_row_are_none(config: RunConfig) -> None:
    assert get_row_details(get_matrix(MatrixQuery(scope="real", cell="no-such"))) is None


def test_row_details_take_four_queries(config: RunConfig, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    matrix = get_matrix(build_open_query(config))
    with django_assert_num_queries(4):
        get_row_details(matrix)
