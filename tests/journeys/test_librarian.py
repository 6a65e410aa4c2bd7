"""Librarian: creates and uses a sampling profile, edits a preset and compares its versions."""

import json

from playwright.sync_api import Page, expect

from tests.journeys.clicks import ClickCounter
from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import RunConfig, StepBody


def test_librarian_creates_profile_and_run_sends_its_temperature(
    browser_page: Page, clicks: ClickCounter, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = browser_page
    make_scripted_model(start_server(answer_correctly), "mine")
    page.goto("/profiles/")
    page.get_by_role("link", name="New profile").click()
    page.get_by_label("Name", exact=True).fill("cool")
    page.get_by_label("temperature").fill("0.2")
    page.get_by_role("button", name="Save version 1").click()
    expect(page.get_by_role("heading", name="cool", exact=True)).to_be_visible()

    start_run(page, RunForm(models=("mine",), profiles=("cool",), trials=1))
    wait_until_finished(page, 2)  # the profile `default` is chosen too

    sent = StepBody.objects.filter(step__trial__config__profile="cool").values_list("request", flat=True)
    bodies = [json.loads(bytes(request)) for request in sent if request]
    assert {body["temperature"] for body in bodies if "messages" in body} == {0.2}
    assert RunConfig.objects.get(profile="cool").options == {"temperature": 0.2}
    assert clicks.count <= 15


def test_librarian_edits_preset_and_compares_versions(
    browser_page: Page, clicks: ClickCounter, catalogue: None
) -> None:
    page = browser_page
    page.goto("/presets/")
    page.get_by_role("link", name="New preset").click()
    page.get_by_label("Name", exact=True).fill("short")
    page.locator("[name=set_max_turns]").fill("3")
    page.get_by_role("button", name="Save version 1").click()
    page.locator("[name=set_max_turns]").fill("5")
    page.get_by_role("button", name="Save version 2").click()

    difference = page.get_by_role("region", name="Difference")
    expect(difference).to_contain_text("version 1 to version 2")
    row = difference.get_by_role("row").filter(has_text="max_turns")
    expect(row.get_by_role("cell")).to_have_text(["3", "5"])
    assert clicks.count == 3
