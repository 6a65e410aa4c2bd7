"""Fixer: replays trials whose calls were written in tags, with a preset that reads the tags."""

from playwright.sync_api import Page, expect

from tests.journeys.run_form import wait_until_finished
from tests.lab.scripted_runs import launch_run
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Model, Step

TRIALS = 10


def test_fixer_replay_changes_nine_outcomes_and_sends_nothing(
    browser_page: Page, personas: None, worker: WorkerProcess
) -> None:
    page = browser_page
    model = Model.objects.get(name="tagged-calls")
    run = launch_run(model, profiles=(), scenarios=("weather",), strategies=("raw",), trials=TRIALS)
    page.goto(f"/runs/{run.pk}/")
    wait_until_finished(page, TRIALS)
    Step.objects.filter(trial=run.trials.order_by("position")[4]).update(body_cut=True)  # as for an answer over 16 MB
    page.goto(f"/runs/{run.pk}/")

    page.get_by_role("link", name="What if").click()
    page.get_by_label("content_tag_tool_call_fallback").check()
    page.get_by_role("button", name=f"Replay {TRIALS} trials").click()

    expect(page.get_by_role("heading", name="9 fail → pass, 1 unknown")).to_be_visible()
    expect(page.get_by_text("unknown from step 1")).to_have_count(1)
    expect(page.get_by_text(f"{TRIALS} before the replay, {TRIALS} after it")).to_be_visible()
    run.refresh_from_db()
    assert run.requests_reserved == TRIALS
    assert "preset=content_tag_tool_call_fallback" in page.url

    page.get_by_role("row", name="fail pass").first.get_by_role("link").click()
    expect(page.locator(".verdict.fail")).to_be_visible()
