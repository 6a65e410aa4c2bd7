"""The decision page: the rule stands in the address, the answer and every reason on the page."""

import pytest
from django.test import Client

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.lab.metrics.cells import recompute, recompute_immediately
from toolbench.lab.models import Cell, Provider, Run, RunConfig, SamplingProfile, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db


def measured(name: str, passed: int, *, lost: int = 0, millis: float = 1000.0, **run: object) -> RunConfig:
    config = make_config(make_run(**run), make_model(name))
    cell = make_cell(config)
    for number in range(passed):
        make_trial(cell, duration_ms=millis + number)
    for _ in range(lost):
        make_trial(cell, "infra", failure_class="rate_limited")
    recompute_stale_cells()
    return config


def hidden(text: str, name: str) -> str:
    return text.partition(f'name="{name}" value="')[2].partition('"')[0]


def test_a_fast_one_that_loses_trials_is_refused_for_delivery(owner_client: Client) -> None:
    measured("vendor/fast", 64, lost=12, millis=100.0)
    measured("vendor/steady", 76)
    text = read_html(owner_client.get("/decide/?want=fastest"))
    assert "Only Example · vendor/steady · default · production · native qualifies." in text
    assert "Too many trials without an answer: 12 of 76 (rate_limited × 12)." in text
    assert 'data-reason="delivery"' in text
    steady, fast = text.split("<tbody>")[1].split("</tr>")[:2]
    assert "vendor/steady" in steady
    assert "on the front" in steady
    assert "vendor/fast" in fast
    assert "on the front" not in fast
    assert "1 qualified" in text
    assert "1 refused" in text


def test_the_page_says_why_nothing_is_drawn_and_counts_in_plain_words(owner_client: Client) -> None:
    config = measured("vendor/a", 1)
    Cell.objects.update(saturated=1)
    text = read_html(owner_client.get("/decide/"))
    assert text.count("<svg") == 2
    assert 'class="open-bound"' in text
    assert "open with 1 answer:" in text
    assert f">run {config.run_id} · settings" in text
    assert "trials measured while this machine was overloaded: 1" in text
    RunConfig.objects.update(provider_kind="local")
    assert "No chart: p95 is not used because local models share this machine" in read_html(
        owner_client.get("/decide/")
    )
    Trial.objects.update(outcome="infra")
    recompute_immediately(Cell.objects.values_list("pk", flat=True))
    RunConfig.objects.update(provider_kind="openai")
    assert "No chart: no configuration has an answer with a measured time" in read_html(owner_client.get("/decide/"))


@pytest.mark.parametrize(
    "query",
    ["success=x", "within=-1", "run=%00", "scope=all", "want=best", "q=%00", "group=zz", "within=none", "run=7"],
)
def test_no_address_breaks_the_page(owner_client: Client, query: str) -> None:
    measured("vendor/a", 3)
    assert owner_client.get(f"/decide/?{query}").status_code == 200


def test_simulated_configurations_stay_under_demo_and_are_labelled(owner_client: Client) -> None:
    measured("vendor/sim", 3, simulated=True)
    assert "vendor/sim" not in read_html(owner_client.get("/decide/"))
    demo = read_html(owner_client.get("/decide/?scope=demo"))
    assert "Simulated models: this says nothing about real models." in demo
    assert "vendor/sim" in demo


def test_missing_trials_have_a_button_that_leads_to_their_run(owner_client: Client) -> None:
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    run = launch(RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=40, instance_kind="drawn"))
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=1000)
    recompute([cell.pk for cell in run.cells.all()])
    text = read_html(owner_client.get("/decide/?scope=demo&want=fastest"))
    assert "it closes with 32 more trials" in text
    assert "passes without a failure" not in text
    assert "Plan 32 more trials" in text
    asked = {"scope": "demo", "want": "fastest", "success": "90", "within": "20", "shown": hidden(text, "shown")}
    planned = owner_client.post("/decide/", asked)
    newest = Run.objects.latest("pk")
    assert planned["Location"] == f"/runs/{newest.pk}/"
    assert newest.trials.count() == 32
    shown = read_html(owner_client.get("/decide/?scope=demo&want=fastest"))
    assert f'href="/runs/{newest.pk}/">Run {newest.pk}</a>' in shown
    assert "Plan 32 more trials" not in shown
    again = read_html(owner_client.post("/decide/", asked, follow=True))
    assert "Nothing was planned. No trials are missing now" in again
    assert Run.objects.latest("pk") == newest


def test_paid_missing_trials_are_asked_about_first(owner_client: Client) -> None:
    model = make_model("gpt-4o", provider=make_provider("OpenAI", template="openai"))
    SamplingProfile.objects.create(name="default")
    request = RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=40, instance_kind="drawn")
    run = launch(request, confirmed_requests=1_000_000)
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=1000)
    recompute([cell.pk for cell in run.cells.all()])
    asked = {"want": "fastest", "success": "90", "within": "20"}
    asked["shown"] = hidden(read_html(owner_client.get("/decide/?want=fastest")), "shown")
    page = read_html(owner_client.post("/decide/", asked))
    assert "Confirm paid requests" in page
    assert Run.objects.count() == 1
    assert hidden(page, "shown") == asked["shown"]
    agreed = page.partition('name="agreed" value="')[2].partition('"')[0]
    assert owner_client.post("/decide/", {**asked, "agreed": agreed})["Location"].startswith("/runs/")


def test_cheapest_without_a_price_says_where_to_enter_one(owner_client: Client) -> None:
    measured("vendor/a", 76)
    text = read_html(owner_client.get("/decide/?want=cheapest"))
    assert "No price is known of the one that was measured" in text
    assert "toolbench/evals/data/prices.json" in text
    assert "Only Example" in read_html(owner_client.get("/decide/?want=reliable"))
