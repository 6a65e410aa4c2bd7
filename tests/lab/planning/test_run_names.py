"""Generated titles of runs."""

import pytest

from tests.factories import make_model
from tests.lab.scripted_runs import build_request
from toolbench.lab.models import SamplingProfile
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_names import build_run_title
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db

TYPICAL = ("happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only")


def test_build_run_title_names_models_profiles_and_scenario_set() -> None:
    for name in ("cold", "warm"):
        SamplingProfile.objects.create(name=name)
    models = tuple(make_model(f"vendor/{name}").pk for name in ("one", "two", "three"))
    plan = build_plan(RunRequest(models=models, profiles=("cold", "warm"), scenarios=TYPICAL))
    assert build_run_title(plan) == "one, two and 1 more × cold, warm · typical"


def test_build_run_title_names_single_scenarios_and_methods() -> None:
    model = make_model("one")
    plan = build_plan(build_request(model, scenarios=("weather", "happy_path"), methods=("native", "text_json")))
    assert build_run_title(plan) == "one × default · happy_path, weather · native, text_json"


def test_launch_title_replaces_generated_name() -> None:
    model = make_model("one")
    assert str(launch(build_request(model, title=" Mine "))) == "Mine"
    assert str(launch(build_request(model, scenarios=("weather",)))) == "one × default · weather"


def test_build_run_title_fits_its_column() -> None:
    assert len(build_run_title(build_plan(build_request(make_model("m" * 199))))) <= 200
