"""The columns of the trial list."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.results.trial_list.sort_columns import SORT_COLUMNS, SORTS
from toolbench.lab.results.trial_list.table import (
    TRIAL_COLUMNS,
    choose_trial_columns,
    export_trial_list,
    list_cells,
    list_heads,
)

pytestmark = pytest.mark.django_db


def test_trial_columns_sorts_exist_and_have_sort_columns() -> None:
    used = {name for column in TRIAL_COLUMNS.values() for name, _ in column.sorts}
    assert used <= SORTS.keys() == SORT_COLUMNS.keys()


def test_list_heads_of_the_sorted_column_reverse_the_order() -> None:
    columns = choose_trial_columns(["time"])
    (first,) = list_heads(columns, TrialFilter())
    (second,) = list_heads(columns, TrialFilter(sort="slow"))
    assert (first.query, first.direction) == ("sort=slow", "none")
    assert (second.query, second.direction) == ("sort=fast", "descending")


@pytest.mark.parametrize("sort", SORTS)
def test_trial_list_is_read_in_every_order(sort: str) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2, "fail": 1})
    assert len(get_trials(TrialFilter(sort=sort)).rows) == 3


@pytest.mark.parametrize(("sort", "models"), [("model", ["alpha", "beta"]), ("-model", ["beta", "alpha"])])
def test_trial_list_is_sorted_by_model(sort: str, models: list[str]) -> None:
    run = make_run()
    for name in ("beta", "alpha"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 1})
    assert [row.model for row in get_trials(TrialFilter(sort=sort)).rows] == models


def test_trial_list_sorted_by_cause_has_trials_without_cause_last() -> None:
    cell = make_cell(make_config(make_run()))
    for cause in ("", "b_cause", "a_cause"):
        make_trial(cell, "fail", cause=cause)
    orders = [[row.cause for row in get_trials(TrialFilter(sort=sort)).rows] for sort in ("cause", "-cause")]
    assert orders == [["a_cause", "b_cause", ""], ["b_cause", "a_cause", ""]]


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("Turn 2, parsed call 1: $.city is 'Rome'.", "$.city is 'Rome'."),
        ("Turn 1: the answer is text.", "the answer is text."),
        ("Turn the page: now.", "Turn the page: now."),
    ],
)
def test_trial_list_first_problem_omits_its_turn(sentence: str, shown: str) -> None:
    make_trial(make_cell(make_config(make_run())), "fail", sentence=sentence)
    (row,) = get_trials(TrialFilter()).rows
    (cell,) = list_cells(row, choose_trial_columns(["why"]))
    assert (cell.value, cell.title) == (shown, sentence)


def test_list_cells_follows_the_chosen_columns() -> None:
    make_trial(make_cell(make_config(make_run())), "fail", turns=3)
    (row,) = get_trials(TrialFilter(), needs_call_names=True).rows
    cells = list_cells(row, choose_trial_columns(["turns", "outcome", "expected"]))
    assert [(cell.css_class, cell.value) for cell in cells] == [
        ("col-outcome", "fail"),
        ("col-expected", "state_patch"),
        ("col-turns num", 3),
    ]


def test_export_trial_list_has_every_column_in_list_order() -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 2, "fail": 1})
    table = export_trial_list(TrialFilter(demo="1", sort="-failed"))
    assert table.columns[2:] == tuple(column.export for column in TRIAL_COLUMNS.values())
    assert [row[2] for row in table.rows] == ["pass", "pass", "fail"]
    assert "models are simulated" in table.notes[0]
