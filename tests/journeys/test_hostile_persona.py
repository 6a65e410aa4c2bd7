"""Model, provider and person that write scripts into every field: pages show the scripts as text."""

import json

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.lab.scripted_runs import make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Run, Trial
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, chat_reply, error_reply

EVIL = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'><b onmouseover=window.hacked=1>{{7*7}}"
FIELDS = {
    "id": EVIL,
    "model": EVIL,
    "system_fingerprint": EVIL,
    "provider": EVIL,
    "object": EVIL,
    "service_tier": EVIL,
    EVIL: EVIL,
}
HEADERS = {"content-type": "application/json", "x-request-id": EVIL, "server": EVIL, EVIL.split("=")[0][1:7]: EVIL}
PAGES = ("/", "/runs/", "/models/", "/providers/", "/runs/new/")


def reply_with_scripts(seen: ReceivedRequest) -> ScriptedReply:
    """Reply with a call of a known tool, a call of an unknown tool or an error, each with markup in every text."""
    turn = len(seen.json()["messages"]) % 3
    if turn == 0:
        return ScriptedReply(400, HEADERS, bytes(error_reply(400, EVIL, type=EVIL, param=EVIL).body))  # type: ignore[arg-type]  # it is bytes
    name = "state_get" if turn == 1 else EVIL
    function = {"name": name, "arguments": json.dumps({EVIL: EVIL, "workspace_id": EVIL})}
    message = {
        "content": EVIL,
        "reasoning_content": EVIL,
        "refusal": EVIL,
        "tool_calls": [{"id": EVIL, "type": EVIL, "function": function}],
    }
    answer = chat_reply(message, finish_reason=EVIL, **FIELDS)
    return ScriptedReply(200, HEADERS, answer.body)


def assert_nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hacked") is None, page.url
    assert page.locator("main script:not([type='application/json']), main img").count() == 0, page.url


def test_pages_run_no_script_of_model_or_person(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = browser_page
    make_scripted_model(start_server(reply_with_scripts), f"evil {EVIL}"[:80])
    start_run(page, RunForm(models=(f"evil {EVIL}"[:80],), scenarios=("happy_path", "chat_only"), trials=2))
    wait_until_finished(page, 4)
    page.get_by_label("Label").fill(EVIL[:80])
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Label saved.")).to_be_visible()
    assert_nothing_ran(page)
    run = Run.objects.get()

    for path in (
        *PAGES,
        f"/trials/?run={run.pk}",
        f"/latency/?run={run.pk}",
        f"/policy/?config={run.configs.get().pk}",
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        assert_nothing_ran(page)
    page.goto(f"/matrix/?view=bars&scope=runs&run={run.pk}")
    page.locator("a.cell").first.click()
    expect(page.get_by_role("heading", name="Trials of the row, failed first")).to_be_visible()
    assert_nothing_ran(page)


def test_trial_page_shows_markup_of_every_step_as_text(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = browser_page
    make_scripted_model(start_server(reply_with_scripts), "evil")
    start_run(page, RunForm(models=("evil",), trials=1))
    wait_until_finished(page, 1)
    trial = Trial.objects.get()
    page.goto(f"/trials/{trial.pk}/")
    steps = [link.get_attribute("href") for link in page.locator(".timeline a.step").all()]
    assert len(steps) > 4

    for step in steps:
        page.goto(f"/trials/{trial.pk}/{step}")
        for detail in page.locator("main details:not(.menu, [open]) > summary").all():
            detail.click()
        assert_nothing_ran(page)
        if ".response" in str(step):
            expect(page.locator("#step")).to_contain_text("<script>")
