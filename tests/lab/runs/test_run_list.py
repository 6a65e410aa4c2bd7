"""The list of runs adds up what each has."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.counts.tallies import tally
from toolbench.lab.runs.run_list import get_runs

pytestmark = pytest.mark.django_db


def test_the_list_has_the_sums_of_the_rows_themselves() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 3, "fail": 1, "infra": 2})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    line = get_runs("own")[0]
    assert (line.tally, line.models) == (tally(run.cells.all()), (config.model_name,))
    assert line.answered is not None
    assert line.delivered is not None
    assert (line.answered.k, line.answered.n, line.delivered.n) == (3, 4, 6)


def test_a_list_gives_no_rate_over_several_configurations() -> None:
    run = make_run()
    for _ in range(2):
        make_trials(make_cell(make_config(run)), **{"pass": 2})
    assert (get_runs("own")[0].answered, get_runs("own")[0].delivered) == (None, None)


def test_simulated_runs_have_a_list_of_their_own() -> None:
    real, simulated = make_run(), make_run(simulated=True)
    assert [line.run for line in get_runs("own")] == [real]
    assert [line.run for line in get_runs("simulated")] == [simulated]
