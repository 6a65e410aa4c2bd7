"""Sceptic: sees on the first page that the server dropped the tools from the prompt of the local model."""

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.worker_process import WorkerProcess
from toolbench.lab.runs.local_demo import launch_next_demo_run
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply

RECORDED = Path(__file__).parents[1] / "providers" / "data" / "local"


def build_recorded_reply(name: str) -> ScriptedReply:
    """Return an answer of a real llama.cpp server, byte for byte."""
    answer = json.loads((RECORDED / f"{name}.json").read_text())
    return ScriptedReply(answer["status"], {"content-type": "application/json"}, answer["body"].encode())


def reply_of_own_template(seen: ReceivedRequest) -> ScriptedReply:
    return build_recorded_reply("template_own" if seen.path == "/apply-template" else "tools_dropped")


def reply_of_tool_template(seen: ReceivedRequest) -> ScriptedReply:
    if seen.path == "/apply-template":
        return build_recorded_reply("template_tools" if "tools" in seen.json() else "template_own")
    return build_recorded_reply("call" if "tools" in seen.json() else "constrained")


def test_sceptic_opens_prompt_without_tools_in_two_clicks(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    for name, reply in (("local-own", reply_of_own_template), ("local-tools", reply_of_tool_template)):
        register_local_server(name, {"url": start_server(reply).base_url, "model": "smollm2-135m-instruct"})
    launch_next_demo_run()
    page = browser_page
    page.goto("/")

    page.get_by_role("link", name="See the prompt without tools").click()
    page.get_by_role("link", name="rendered prompt").click()

    prompt = page.get_by_role("region", name="Rendered prompt")
    expect(prompt).to_be_in_viewport()
    expect(prompt).to_contain_text("<|im_start|>user")
    expect(prompt).not_to_contain_text('"parameters"')
    expect(page.get_by_text("tools dropped by the template")).to_be_visible()
    expect(page.get_by_role("heading", name="The server dropped the tools")).to_be_visible()


def test_sceptic_sees_that_demo_table_does_not_rank_configurations(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    for name, reply in (("local-own", reply_of_own_template), ("local-tools", reply_of_tool_template)):
        register_local_server(name, {"url": start_server(reply).base_url, "model": "smollm2-135m-instruct"})
    launch_next_demo_run()
    browser_page.goto("/")

    box = browser_page.get_by_role("region", name="Local demonstration")
    expect(box.locator("tbody").first.get_by_role("row")).to_have_count(6)
    expect(box).to_contain_text("a correct call also names the requested city")
    expect(box).to_contain_text("does not rank the configurations")
    expect(browser_page.locator(".start-fold > summary").first).not_to_contain_text("%")
