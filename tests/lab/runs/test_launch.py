from collections import Counter
from dataclasses import replace

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.factories import make_model, make_provider
from tests.lab.scripted_runs import build_request, launch_run
from toolbench.lab.models import Model, Run, Trial
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db


def test_launch_stores_run_configs_cells_and_trials() -> None:
    run = launch_run(make_model("a/a"), make_model("b/b"), scenarios=("happy_path", "chat_only"), trials=3)
    assert (run.configs.count(), run.cells.count(), run.trials.count(), run.trial_count) == (2, 4, 12, 12)
    assert run.state == Run.State.RUNNING
    assert set(run.cells.values_list("queued", "stale")) == {(3, False)}


def test_launch_freezes_names_and_layers() -> None:
    model = make_model("a/a", canonical="a", true_rates={"drift": 0.1})
    run = launch_run(model)
    Model.objects.filter(pk=model.pk).update(name="renamed", true_rates={})
    config = run.configs.get()
    assert (config.model_name, config.provider_name, config.canonical) == ("a/a", "Example", "a")
    assert config.true_rates == {"drift": 0.1}
    assert config.layers[0][1]["tool_use_mode"] == "enforced"
    assert len(config.policy_hash) == 64


def test_launch_with_too_long_strategy_is_refused() -> None:
    strategy = "production" + 3 * "+openai_compatible_reliability"
    with pytest.raises(LaunchError, match="at most 80 characters"):
        launch_run(make_model(), strategies=(strategy,))
    assert not Run.objects.exists()


def test_launch_blocks_have_one_trial_per_cell_in_random_order() -> None:
    run = launch_run(make_model(), scenarios=("happy_path", "missing_workspace_id", "chat_only", "weather"), trials=6)
    trials = list(run.trials.order_by("position").values_list("block", "cell_id"))
    blocks = [tuple(cell for block, cell in trials if block == number) for number in range(1, 7)]
    assert all(Counter(block) == Counter(blocks[0]) for block in blocks)
    assert [block for block, _ in trials] == sorted(block for block, _ in trials)
    assert len(set(blocks)) > 1


def test_launch_with_equal_seed_gives_equal_order() -> None:
    first = launch_run(make_model(), scenarios=("happy_path", "chat_only", "weather"), trials=4, seed=5)
    second = launch_run(make_model(), scenarios=("happy_path", "chat_only", "weather"), trials=4, seed=5)

    def order(run: Run) -> list[tuple[str, int, int, int]]:
        named = run.trials.order_by("position")
        return list(named.values_list("scenario", "index", "seed", "instance_seed"))

    assert first.order_seed == second.order_seed
    assert order(first) == order(second)


def test_launch_of_first_page_puts_constrained_first_in_blocks() -> None:
    model = make_model(constraint="grammar")
    configs = tuple(ConfigChoice(model.pk, method=method) for method in ("native", "text_json", "constrained"))
    run = launch(build_request(configs=configs, scenarios=("weather",), trials=3, purpose="first_page"))
    first = run.trials.filter(position__in=[0, 3, 6]).values_list("config__method", flat=True)
    assert set(first) == {"constrained"}


def test_launch_configs_share_instances_and_have_distinct_seeds() -> None:
    run = launch_run(make_model("a/a"), make_model("b/b"), trials=2)
    assert len(set(run.trials.values_list("instance_seed", flat=True))) == 2
    assert len(set(run.trials.values_list("seed", flat=True))) == 4
    assert all(0 <= seed < 2**31 for seed in run.trials.values_list("seed", flat=True))


def test_launch_not_applicable_trials_are_done() -> None:
    run = launch_run(make_model(workarounds=["tool_use_disabled"]), scenarios=("happy_path", "chat_only"), trials=2)
    tools = run.cells.get(scenario="happy_path")
    assert (tools.not_applicable, tools.queued) == (2, 0)
    assert run.cells.get(scenario="chat_only").queued == 2
    skipped = run.trials.filter(outcome="na")
    assert set(skipped.values_list("task_pass", "state", "failure_class")) == {(None, "done", "tools_off")}


def test_launch_without_applicable_trials_is_finished() -> None:
    run = launch_run(make_model(workarounds=["tool_use_disabled"]), trials=2)
    assert run.state == Run.State.FINISHED
    assert run.finished_at is not None


def test_launch_of_paid_requests_needs_sufficient_confirmation() -> None:
    request = build_request(make_model(), trials=300)
    with pytest.raises(PaidRequestsUnconfirmedError) as refused:
        launch(request)
    assert refused.value.max_paid_requests == build_plan(request).max_paid_requests
    assert str(refused.value).startswith("This may send up to ")
    assert not Run.objects.exists()
    with pytest.raises(PaidRequestsUnconfirmedError):
        launch(replace(request, trials=301), confirmed_requests=refused.value.max_paid_requests)
    assert launch(request, confirmed_requests=refused.value.max_paid_requests).trial_count == 300


def test_launch_with_simulated_model_marks_run() -> None:
    simulated = make_model("persona", provider=make_provider("Sim", kind="simulated", base_url="", service="simulated"))
    run = launch_run(simulated)
    assert (run.simulated, run.configs.get().service) == (True, "simulated")


def test_launch_stores_skipped_configurations() -> None:
    run = launch_run(make_model(), methods=("native", "constrained"))
    assert run.skipped[0]["why"] == "The endpoint is not known to constrain answers."


def test_launch_notifies_workers_on_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        launch_run(make_model())
    assert len(callbacks) == 1


def test_launch_two_runs_of_one_provider_succeeds() -> None:
    model = make_model()
    launch_run(model)
    launch_run(model)
    assert Trial.objects.filter(provider=model.provider).count() == 6
