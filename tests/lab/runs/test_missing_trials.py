"""Adding the missing trials of several cells at once."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trials
from tests.lab.scripted_runs import launch_run
from toolbench.lab.models import Model
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError

pytestmark = pytest.mark.django_db(transaction=True)


def make_free_model() -> Model:
    return make_model(provider=make_provider("Own", base_url="http://10.0.0.5"))


def test_add_missing_trials_fills_several_cells() -> None:
    run = launch_run(make_free_model(), trials=2, scenarios=("happy_path", "weather", "chat_only"))
    first, second, third = run.cells.order_by("position")
    control.add_trials(run.pk, second.pk, 3)
    assert control.add_missing_trials(run.pk, [first.pk, second.pk], 6) == 5
    assert control.count_trials_by_cell(run.pk) == {first.pk: 6, second.pk: 6, third.pk: 2}
    added = run.trials.filter(added_by_hand=True).order_by("position")[3:]
    assert [(trial.cell_id, trial.index) for trial in added] == [
        (first.pk, 3), (first.pk, 4), (first.pk, 5), (first.pk, 6), (second.pk, 6),
    ]  # fmt: skip
    run.refresh_from_db()
    assert run.trial_count == run.trials.count() == 14
    assert run.trials.values("position").distinct().count() == 14


def test_add_missing_trials_twice_adds_once() -> None:
    run = launch_run(make_free_model(), trials=2)
    cells = list(run.cells.values_list("pk", flat=True))
    control.add_missing_trials(run.pk, cells, 5)
    with pytest.raises(RunActionError, match="None of the chosen cells has fewer than 5 trials"):
        control.add_missing_trials(run.pk, cells, 5)
    assert run.trials.count() == 5


def test_count_trials_by_cell_omits_cancelled_trials() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "cancelled": 3})
    assert control.count_trials_by_cell(cell.run_id) == {cell.pk: 2}


@pytest.mark.parametrize(("target", "message"), [(0, "1 to 2,000 trials"), (2001, "1 to 2,000 trials")])
def test_add_missing_trials_target_out_of_range_is_refused(target: int, message: str) -> None:
    run = launch_run(make_model())
    with pytest.raises(RunActionError, match=message):
        control.add_missing_trials(run.pk, [run.cells.get().pk], target)


def test_add_missing_trials_with_cell_of_other_run_adds_none() -> None:
    run, other = launch_run(make_model()), launch_run(make_model())
    with pytest.raises(RunActionError, match="has no such cell"):
        control.add_missing_trials(run.pk, [run.cells.get().pk, other.cells.get().pk], 9)
    assert run.trials.count() == other.trials.count() == 3


def test_add_missing_trials_needs_confirmation_of_paid_requests() -> None:
    run = launch_run(make_model(provider=make_provider(max_attempts=1)), trials=1, scenarios=("happy_path", "weather"))
    cells = list(run.cells.values_list("pk", flat=True))
    with pytest.raises(PaidRequestsUnconfirmedError) as raised:
        control.add_missing_trials(run.pk, cells, 500)
    assert run.trials.count() == 2
    assert control.add_missing_trials(run.pk, cells, 500, confirmed_requests=raised.value.max_paid_requests) == 998
