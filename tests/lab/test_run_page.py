"""The run page adds up its cells and says where every setting came from."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Run, Trial
from toolbench.lab.run_page import get_run_page, get_runs

pytestmark = pytest.mark.django_db


def test_the_two_rates_differ_by_infrastructure() -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "fail": 1, "infra": 2})
    line = get_run_page(run.pk).lines[0]
    assert (line.answered.k, line.answered.n) == (3, 4)
    assert (line.delivered.k, line.delivered.n) == (3, 6)


def test_controls_are_kept_out_of_the_tool_rate() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 2})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    line = get_run_page(run.pk).lines[0]
    assert (line.answered.k, line.answered.n) == (2, 2)
    assert line.control.failed == 2


def test_failures_are_grouped_by_signature_most_frequent_first() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config, "type_error_recovery"), **{"fail": 1})
    make_trials(make_cell(config), **{"fail": 3})
    assert [(group.scenario, group.count) for group in get_run_page(run.pk).groups] == [
        ("happy_path", 3),
        ("type_error_recovery", 1),
    ]


def test_every_frozen_key_names_its_layer_and_the_scenario_comes_last() -> None:
    run = make_run()
    layers = [["provider default", {"max_turns": 9}], ["preset x", {"max_tool_args_bytes": 1000}]]
    config = make_config(run, layers=layers)
    make_cell(config, "long_arguments_guard")
    keys = {key.key: key for key in get_run_page(run.pk, scenario="long_arguments_guard").frozen.chosen}
    assert (keys["max_turns"].value, keys["max_turns"].origin) == (9, "provider default")
    assert keys["max_tool_args_bytes"].value == 300
    assert "long_arguments_guard" in keys["max_tool_args_bytes"].origin


def test_the_time_left_has_a_range_around_it() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 20, "queued": 10})
    Trial.objects.filter(outcome="pass").update(started_at=timezone.now() - timedelta(seconds=60))
    pace = get_run_page(run.pk).pace
    assert pace.left is not None
    assert pace.left_low is not None
    assert pace.left_high is not None
    assert pace.left_low < pace.left < pace.left_high


def test_nothing_is_said_of_the_pace_before_two_trials_are_done() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 1, "queued": 9})
    assert get_run_page(run.pk).pace.per_minute is None


def test_simulated_runs_have_a_list_of_their_own() -> None:
    real, simulated = make_run(), make_run(simulated=True)
    assert [line.run for line in get_runs(simulated=False)] == [real]
    assert [line.run for line in get_runs(simulated=True)] == [simulated]


def test_a_deleted_run_has_no_page() -> None:
    run = make_run(deleted_at=timezone.now())
    with pytest.raises(Run.DoesNotExist):
        get_run_page(run.pk)


def test_the_number_of_queries_does_not_grow_with_cells(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    run = make_run()
    for _ in range(6):
        config = make_config(run)
        make_trials(make_cell(config), **{"pass": 1, "fail": 1})
    with django_assert_num_queries(5):
        get_run_page(run.pk)
