"""The difference that a plan can detect, as the launch form shows it."""

import pytest
from django.test import Client

from tests.factories import make_model
from tests.page_html import read_html
from toolbench.evals.statistics.power import count_trials_to_detect
from toolbench.lab.models import SamplingProfile
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.planning.statistical_power import compute_power_hint

pytestmark = pytest.mark.django_db


def test_compute_power_hint_sums_scenarios_without_controls() -> None:
    run_request = RunRequest(models=(make_model().pk,), scenarios=("happy_path", "long_arguments_guard", "chat_only"))
    hint = compute_power_hint(build_plan(run_request), None)
    assert hint is not None
    assert (hint.trials, hint.points) == (20, 10)
    assert hint.needed_trials == -(-count_trials_to_detect(0.1, share=0.9) // 2)
    assert hint.detectable_points is not None
    assert count_trials_to_detect(hint.detectable_points / 100, share=0.9) <= 20


def test_compute_power_hint_of_controls_only_is_none() -> None:
    assert compute_power_hint(build_plan(RunRequest(models=(make_model().pk,), scenarios=("chat_only",))), 5) is None


def test_launch_form_shows_power_hint_for_requested_points(owner_client: Client) -> None:
    SamplingProfile.objects.create(name="default")
    query: dict[str, str | int] = {
        "models": make_model().pk,
        "scenarios": "happy_path",
        "profiles": "default",
        "strategies": "production",
    }
    query |= {"methods": "native", "trials": 10, "instance_kind": "parity", "tool_use_mode": "enforced"}
    response = owner_client.get("/runs/new/", query | {"tool_failure_policy": "fatal", "points": 20})
    needed = count_trials_to_detect(0.2, share=0.9)
    assert f"A difference of 20 points needs {needed} trials per scenario" in read_html(response)
