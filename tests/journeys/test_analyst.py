"""Analyst: compares models with equal and with different success rates."""

from playwright.sync_api import Page, expect

from tests.factories import make_model, make_provider
from tests.journeys.run_form import TYPICAL_SCENARIOS, wait_until_finished
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Model, Provider
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

SEED = 20_261_122  # simulated models draw from it, so the figures are the same in every run
HERE, THERE = "Simulated", "Second host"


def test_analyst_finds_difference_only_between_unequal_models(
    browser_page: Page, personas: None, worker: WorkerProcess
) -> None:
    twin = make_provider(THERE, kind=Provider.Kind.SIMULATED, service="simulated", base_url="")
    make_model("reliable-95", provider=twin)
    models = Model.objects.filter(name__in=["reliable-70", "reliable-95"], provider__name__in=[HERE, THERE])
    chosen = tuple(models.values_list("pk", flat=True))
    run = launch(RunRequest(models=chosen, scenarios=TYPICAL_SCENARIOS[:4], trials=15, seed=SEED))
    page = browser_page
    page.goto(f"/runs/{run.pk}/")
    wait_until_finished(page, 3 * 4 * 15)

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Results").click()
    page.get_by_role("link", name="Compare", exact=True).click()
    both, first, second = (page.get_by_role("group", name=name) for name in ("All sides", "Baseline", "Side 2"))
    both.get_by_label("Run", exact=True).select_option(str(run.pk))
    both.get_by_label("Model").select_option("reliable-95")
    first.get_by_label("Provider").select_option(HERE)
    second.get_by_label("Provider").select_option(THERE)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="No difference shown")).to_be_visible()
    expect(page.get_by_text("Simulated models with known success rates")).to_be_visible()

    page.get_by_role("link", name="Choose sides").click()
    both.get_by_label("Model").select_option("")
    both.get_by_label("Provider").select_option(HERE)
    first.get_by_label("Provider").select_option("")
    second.get_by_label("Provider").select_option("")
    first.get_by_label("Model").select_option("reliable-70")
    second.get_by_label("Model").select_option("reliable-95")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="reliable-95 is better: +")).to_be_visible()
