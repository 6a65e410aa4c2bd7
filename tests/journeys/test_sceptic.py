"""A sceptic: "the tiny model cannot call tools" — or was it never shown any? From the first page in two clicks."""

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.worker_process import WorkerProcess
from toolbench.lab.runs.local_demo import launch_next_demo_run
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply

RECORDED = Path(__file__).parents[1] / "providers" / "data" / "local"


def recorded(name: str) -> ScriptedReply:
    """What a real llama.cpp server answered, byte for byte."""
    answer = json.loads((RECORDED / f"{name}.json").read_text())
    return ScriptedReply(answer["status"], {"content-type": "application/json"}, answer["body"].encode())


def own_template(seen: ReceivedRequest) -> ScriptedReply:
    return recorded("template_own" if seen.path == "/apply-template" else "tools_dropped")


def tool_template(seen: ReceivedRequest) -> ScriptedReply:
    if seen.path == "/apply-template":
        return recorded("template_tools" if "tools" in seen.json() else "template_own")
    return recorded("call" if "tools" in seen.json() else "constrained")


def test_the_prompt_without_tools_is_two_clicks_from_the_first_page(
    browser_page: Page, catalogue: None, scripting: StartScriptedServer, worker: WorkerProcess
) -> None:
    for name, play in (("local-own", own_template), ("local-tools", tool_template)):
        register_local_server(name, {"url": scripting(play).base_url, "model": "smollm2-135m-instruct"})
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


def test_the_box_is_no_ranking_and_says_that_valid_is_not_correct(
    browser_page: Page, catalogue: None, scripting: StartScriptedServer, worker: WorkerProcess
) -> None:
    for name, play in (("local-own", own_template), ("local-tools", tool_template)):
        register_local_server(name, {"url": scripting(play).base_url, "model": "smollm2-135m-instruct"})
    launch_next_demo_run()
    browser_page.goto("/")

    box = browser_page.get_by_role("region", name="One small model, six methods")
    expect(box.locator("tbody").first.get_by_role("row")).to_have_count(6)
    expect(box).to_contain_text("a correct call also names the requested city")
    expect(box).to_contain_text("does not rank the methods")
    expect(box.get_by_role("heading")).not_to_contain_text("%")
