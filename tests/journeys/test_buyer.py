"""Buyer: compares one model at two providers, one of which is faulty, and plans a run with a preset."""

from playwright.sync_api import Page, expect

from tests.factories import make_model, make_provider
from tests.journeys.run_form import wait_until_finished
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Model, Provider
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

PRESET = "content_tag_tool_call_fallback"


def test_buyer_finds_provider_as_cause_and_plans_run_with_preset(
    browser_page: Page, personas: None, worker: WorkerProcess
) -> None:
    host = make_provider("Cheap host", kind=Provider.Kind.SIMULATED, service="simulated", base_url="")
    bad = make_model("tagged-calls", provider=host, canonical="acme/one")
    good = Model.objects.get(name="perfect", provider__name="Simulated")
    Model.objects.filter(pk=good.pk).update(canonical="acme/one")
    run_request = RunRequest(models=(good.pk, bad.pk), scenarios=("happy_path",), strategies=("baseline",), trials=20)
    run = launch(run_request)
    page = browser_page
    page.goto(f"/runs/{run.pk}/")
    wait_until_finished(page, 40)

    page.goto("/compare/")
    page.get_by_role("link", name="acme/one at Cheap host and at Simulated").click()
    expect(page.get_by_role("heading", name="Provider, not model")).to_be_visible()
    expect(page.get_by_role("list").filter(has_text="Structured-call rate")).to_contain_text("Cheap host 0/")

    page.get_by_role("link", name=f"Measure with {PRESET}").click()
    expect(page.locator(f'input[name="strategies"][value="{PRESET}"]')).to_be_checked()
    expect(page.locator(f'input[name="models"][value="{bad.pk}"]')).to_be_checked()
    expect(page.get_by_role("button", name="Start 20 trials")).to_be_visible()
