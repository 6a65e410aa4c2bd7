"""Explorer: talks to a model with tools, saves an answer as a test case, and sends an edited trial again."""

import json

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.lab.scripted_runs import launch_run, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Case, Run, Trial
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, text_reply, tool_call_reply

TOOL = {
    "name": "cancel_order",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
}


def reply_with_cancellation(seen: ReceivedRequest) -> ScriptedReply:
    """Reply to a user message with a call, and to a tool result with text."""
    last = seen.json()["messages"][-1]
    return (
        text_reply("It is cancelled.") if last["role"] == "tool" else tool_call_reply(("cancel_order", {"order": "17"}))
    )


def test_explorer_saves_conversation_as_case_and_runs_it(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page, model = browser_page, make_scripted_model(start_server(reply_with_cancellation), "mine")
    page.goto("/runs/")
    page.get_by_role("link", name="Playground").click()
    page.get_by_role("textbox", name="Message").fill("Cancel order 17.")
    page.get_by_label("Tools", exact=True).fill(json.dumps([TOOL]))
    page.get_by_label("Model", exact=True).select_option(str(model.pk))
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".turn").get_by_text("It is cancelled.")).to_have_count(1)
    page.get_by_role("textbox", name="Message").fill("And 18?")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".turn").get_by_text("It is cancelled.")).to_have_count(2)
    assert not Run.objects.exclude(purpose="playground").exists()

    page.get_by_role("button", name="Save as test case, run 20 times").click()

    expect(page.locator("main")).to_contain_text("20/20")
    run = Run.objects.exclude(purpose="playground").get()
    assert page.url.endswith(f"/runs/{run.pk}/")
    case = Case.objects.get(set__kind="own")
    expected = json.loads(case.versions.get().definition)["expect"]["calls"]
    assert expected == [{"name": "cancel_order", "arguments": {"order": "17"}}]


def test_explorer_edits_trial_and_sends_it_five_times(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page, server = browser_page, start_server(lambda seen: text_reply("Done."))
    run = launch_run(make_scripted_model(server, "mine"), scenarios=("chat_only",), trials=1)
    page.goto(f"/trials/{run.trials.get().pk}/")
    expect(page.locator(".verdict.pass, .verdict.fail")).to_be_visible()  # the page is loaded again when a trial ends
    page.get_by_text("Use this trial", exact=True).click()
    page.get_by_role("link", name="Edit and send again").click()
    page.get_by_role("textbox", name="Message").fill("Say something else.")
    page.get_by_role("button", name="Send", exact=True).click()

    expect(page.locator(".strip .mark.pass, .strip .mark.fail")).to_have_count(5)
    assert Trial.objects.filter(run__purpose="playground").count() == 5
    assert sum("Say something else." in received.body.decode() for received in server.seen) == 5
