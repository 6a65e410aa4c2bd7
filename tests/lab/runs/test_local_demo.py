"""Local demonstration: its run of six configurations and the box on the home page."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab import builtin_data
from toolbench.lab.models import Model, Provider, Run, ServiceAddress, Trial
from toolbench.lab.runs.local_demo import OWN_SERVICE, TOOLS_SERVICE, get_local_demo, launch_next_demo_run
from toolbench.lab.runs.repeat import repeat_run

pytestmark = pytest.mark.django_db


def register_servers(*names: str) -> None:
    for name in names:
        ServiceAddress.objects.create(name=name, host="here", url="http://127.0.0.1:1", ready_at=timezone.now())


def test_launch_next_demo_run_waits_for_both_servers() -> None:
    builtin_data.load_builtin_data()
    register_servers(OWN_SERVICE)
    assert launch_next_demo_run() is None
    assert get_local_demo().state == "loading"


def test_launch_next_demo_run_launches_six_cells_once() -> None:
    builtin_data.load_builtin_data()
    register_servers(OWN_SERVICE, TOOLS_SERVICE)
    assert get_local_demo().state == "starting"
    run = launch_next_demo_run()
    assert run is not None
    assert launch_next_demo_run() is None
    configurations = {(config.provider_name, config.method, config.examples) for config in run.configs.all()}
    assert configurations == {
        ("Local, own template", "native", ""),
        ("Local, tool template", "native", ""),
        ("Local, tool template", "native", "weather-1"),
        ("Local, tool template", "text_json", "weather-1"),
        ("Local, tool template", "constrained", ""),
        ("Local, tool template", "constrained", "weather-1"),
    }
    assert run.trials.count() == 60


def test_launch_next_demo_run_launches_intent_run_second() -> None:
    builtin_data.load_builtin_data()
    register_servers(OWN_SERVICE, TOOLS_SERVICE)
    launch_next_demo_run()
    Run.objects.update(state=Run.State.FINISHED, finished_at=timezone.now())
    intent = launch_next_demo_run()
    assert intent is not None
    assert {cell.scenario for cell in intent.cells.all()} == {"classify_intent"}
    assert launch_next_demo_run() is None


def test_launch_next_demo_run_puts_constrained_first_in_blocks() -> None:
    builtin_data.load_builtin_data()
    register_servers(OWN_SERVICE, TOOLS_SERVICE)
    run = launch_next_demo_run()
    assert run is not None
    for block in range(1, 11):
        trials = Trial.objects.filter(run=run, block=block).select_related("config").order_by("position")
        assert [trial.config.method for trial in trials][:2] == ["constrained", "constrained"], block


def test_launch_next_demo_run_does_not_repeat_deleted_runs() -> None:
    builtin_data.load_builtin_data()
    register_servers(OWN_SERVICE, TOOLS_SERVICE)
    launch_next_demo_run()
    Run.objects.update(deleted_at=timezone.now())
    demo = get_local_demo()
    assert (demo.state, demo.is_polling) == ("deleted", False)
    Run.objects.update(finished_at=timezone.now())
    launch_next_demo_run()
    Run.objects.update(deleted_at=timezone.now())
    assert launch_next_demo_run() is None


def test_get_local_demo_without_local_provider_is_off() -> None:
    assert get_local_demo().state == "off"


def test_get_local_demo_without_local_model_stops_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    builtin_data.load_builtin_data()
    monkeypatch.setattr(settings, "LOCAL_MODEL", False)
    assert get_local_demo().state == "off"
    assert not get_local_demo().is_polling


def make_half_done_run() -> Run:
    builtin_data.load_builtin_data()
    run = make_run(purpose="first_page", state="running")
    model = Model.objects.get(provider__service=OWN_SERVICE)
    cell = make_cell(make_config(run, model), "weather", scenario_group="weather")
    for _ in range(3):
        make_trial(cell, "fail", calls=0, valid_calls=0, tools_dropped=True, sentence="The answer holds no call.")
    make_trial(cell, "pass", calls=1, valid_calls=1)
    make_trial(cell, "queued")
    recompute_stale_cells()
    return run


def test_get_local_demo_counts_valid_and_correct_and_dropped_tools() -> None:
    make_half_done_run()
    demo = get_local_demo()
    result = demo.results[0]
    assert (demo.state, demo.done, demo.total) == ("live", 4, 5)
    assert (result.label, result.valid.k, result.correct.k) == ("native tools, the model's own template", 1, 1)
    assert result.main_failure == "The answer holds no call. (3)"
    assert result.tools_dropped_trial_id == Trial.objects.order_by("pk")[0].pk


def test_get_local_demo_keeps_one_of_equally_frequent_failures() -> None:
    run = make_half_done_run()
    for _ in range(3):
        make_trial(run.cells.get(), "fail", sentence="Another failure.")
    assert get_local_demo().results[0].main_failure == "The answer holds no call. (3)"


def test_get_local_demo_keeps_labels_without_provider() -> None:
    make_half_done_run()
    Model.objects.filter(provider__service=OWN_SERVICE).delete()
    Provider.objects.filter(service=OWN_SERVICE).delete()
    assert get_local_demo().results[0].label == "native tools, the model's own template"


def test_get_local_demo_omits_trials_over_deadline() -> None:
    run = make_half_done_run()
    Trial.objects.filter(run=run, outcome="fail").update(end="DEADLINE_EXCEEDED")
    assert get_local_demo().results[0].valid.n == 1


def test_get_local_demo_time_left_is_range_until_run_ends() -> None:
    run = make_half_done_run()
    demo = get_local_demo()
    assert demo.seconds_left_low is not None
    assert demo.seconds_left_high is not None
    assert demo.seconds_left_low < demo.seconds_left_high
    Trial.objects.filter(run=run, state="queued").update(state="done", outcome="pass")
    run.cells.update(stale=True)
    recompute_stale_cells()
    Run.objects.update(finished_at=timezone.now() - timedelta(minutes=5))
    finished = get_local_demo()
    assert (finished.state, finished.is_polling, finished.seconds_left_high) == ("finished", False, None)


def test_get_local_demo_takes_five_queries(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    make_half_done_run()
    with django_assert_num_queries(5):
        get_local_demo()


def test_get_local_demo_polls_until_intent_run_can_begin() -> None:
    run = make_half_done_run()
    Trial.objects.filter(run=run, state="queued").update(state="done", outcome="pass")
    run.cells.update(stale=True)
    recompute_stale_cells()
    assert get_local_demo().is_polling, "its trials are counted but the run has not ended"
    Run.objects.update(finished_at=timezone.now())
    assert get_local_demo().is_polling
    Run.objects.update(finished_at=timezone.now() - timedelta(minutes=5))
    assert not get_local_demo().is_polling


def test_get_local_demo_shows_its_own_run_after_a_repeat() -> None:
    run = make_half_done_run()
    repeat = repeat_run(run, owner=None)
    demo = get_local_demo()
    assert demo.run == run
    assert (repeat.purpose, repeat.repeat_of) == ("", run)
