"""Launch form: the texts of its plan, and example sets."""

import pytest
from django.test import Client

from tests.page_html import read_html
from tests.web.views.test_runs import build_form, make_local_model
from toolbench.lab.models import Run, RunConfig

pytestmark = pytest.mark.django_db


def test_launch_form_names_one_trial_in_the_singular(owner_client: Client) -> None:
    form = build_form(make_local_model(), trials="1", request_cap="1", token_cap="5000")
    text = read_html(owner_client.get("/runs/new/", form))
    assert "Start 1 trial<" in text
    assert "1 request, 5,000 tokens" in text


def test_launch_form_starts_run_with_and_without_examples(owner_client: Client) -> None:
    form = build_form(make_local_model(), scenarios=["weather", "happy_path"], examples=["none", "weather-1"])
    page = owner_client.get("/runs/new/", form)
    assert page.context["form"].is_advanced_expanded()
    assert "The scenario has no set of examples weather-1." in read_html(page)
    owner_client.post("/runs/new/", form)
    scenarios = {config.examples: sorted(config.cells.values_list("scenario", flat=True)) for config in _get_configs()}
    assert scenarios == {"": ["happy_path", "weather"], "weather-1": ["weather"]}


def _get_configs() -> list[RunConfig]:
    return list(Run.objects.get().configs.all())


@pytest.mark.parametrize("changes", [{}, {"examples": []}, {"examples": "none"}])
def test_launch_form_uses_no_examples_by_default(owner_client: Client, changes: dict[str, object]) -> None:
    form = build_form(make_local_model(), scenarios="weather", probe_unknown="on", **changes)
    assert not owner_client.get("/runs/new/", form).context["form"].is_advanced_expanded()
    owner_client.post("/runs/new/", form)
    assert [config.examples for config in _get_configs()] == [""]


def test_launch_form_refuses_unknown_examples(owner_client: Client) -> None:
    answer = owner_client.post("/runs/new/", build_form(make_local_model(), examples="weather-0"))
    assert "weather-0 is not one of the available choices" in read_html(answer)
    assert not Run.objects.exists()
