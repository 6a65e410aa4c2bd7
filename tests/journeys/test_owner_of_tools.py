"""Owner of tools: pastes tools, a message and the expected call, and sees how often the model makes it."""

import json

from playwright.sync_api import Page, expect

from tests.browsers import ComplaintRecorder
from tests.journeys.conftest import StartScriptedServer
from tests.lab.scripted_runs import make_paid_model, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Case, Trial
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, tool_call_reply

TOOL = {
    "name": "cancel_order",
    "description": "Cancels an order.",
    "parameters": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "reason": {"type": "string"}},
        "required": ["order"],
    },
}
TOOLS = json.dumps([{"type": "function", "function": TOOL}], indent=2)
MESSAGE = "Please cancel order 17, it is late."
BAD = '{\n  "name": "cancel_order",\n  "arguments": {"order": "17" "reason": "late"}\n}'


def test_owner_of_tools_sees_rate_and_wrong_argument_of_case(
    browser_page: Page,
    catalogue: None,
    start_server: StartScriptedServer,
    worker: WorkerProcess,
    watch: ComplaintRecorder,
) -> None:
    watch.expected.append("422")

    def reply(seen: ReceivedRequest) -> ScriptedReply:
        reason = "late" if len(provider.seen) % 4 == 0 else "the customer is unhappy"
        return tool_call_reply(("cancel_order", {"order": "17", "reason": reason}))

    provider, page = start_server(reply), browser_page
    model = make_scripted_model(provider, "mine")
    page.goto("/cases/")
    page.get_by_role("link", name="New test case").click()
    page.get_by_label("Tools", exact=True).fill(TOOLS)
    page.get_by_label("Message").fill(MESSAGE)
    page.get_by_label("Expected").fill(BAD)
    page.get_by_label("Model", exact=True).select_option(str(model.pk))
    page.get_by_role("button", name="Save and run").click()

    expect(page.get_by_text("Line 3, column 31: this is not JSON")).to_be_visible()
    assert page.get_by_label("Tools", exact=True).input_value() == TOOLS
    assert page.get_by_label("Message").input_value() == MESSAGE
    assert page.get_by_label("Expected").input_value() == BAD
    assert page.get_by_label("Model", exact=True).input_value() == str(model.pk)
    assert not Case.objects.exists()

    page.get_by_label("Expected").fill(BAD.replace('"17" ', '"17", '))
    page.get_by_role("button", name="Save and run").click()

    newest = page.locator("tr[data-newest]")
    expect(newest).to_have_attribute("data-finished", "yes")
    expect(newest.locator(".rate").first).to_contain_text("5/20")
    expect(newest).to_contain_text("cancel_order $.reason")
    expect(newest).to_contain_text("15×")
    assert len(provider.seen) == Trial.objects.count() == 20
    newest.get_by_role("link", name="cancel_order $.reason").click()
    expect(page.locator("main")).to_contain_text('$.reason: "the customer is unhappy" instead of "late"')


def test_owner_of_tools_confirms_paid_requests_before_sending(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer
) -> None:
    provider, page = start_server(lambda seen: tool_call_reply(("cancel_order", {}))), browser_page
    model = make_paid_model(provider, "paid")
    page.goto("/cases/new/")
    page.get_by_label("Tools", exact=True).fill(TOOLS)
    page.get_by_label("Message").fill(MESSAGE)
    page.get_by_label("Expected").fill('{"name": "cancel_order", "arguments": {"order": "17"}}')
    page.get_by_label("Model", exact=True).select_option(str(model.pk))
    page.get_by_label("Times").fill("500")
    page.get_by_role("button", name="Save and run").click()

    expect(page.get_by_text("paid: up to 1,500 requests. Nothing was sent yet.")).to_be_visible()
    assert Case.objects.count() == 1
    assert not Trial.objects.exists()
    page.get_by_label("Send paid requests").check()
    page.get_by_role("button", name="Send requests").click()

    expect(page.locator("tr[data-newest]")).to_contain_text("0 of 500")
    assert Trial.objects.count() == 500
    assert not provider.seen
