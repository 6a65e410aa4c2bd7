"""Night watch: a nightly schedule sends one alert when a model gets worse."""

import json
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.journeys.clicks import ClickCounter
from tests.journeys.conftest import StartScriptedServer
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import Model, Run, Schedule
from toolbench.lab.schedule import build_schedule
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, json_reply, text_reply

__all__ = ["elsewhere"]  # a fixture
TRIALS = 12


class DegradingModel:
    """Model that solves its tasks until `degraded` is set; then it answers without a call."""

    def __init__(self) -> None:
        self.degraded = False

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        return text_reply("I cannot do that.") if self.degraded else answer_correctly(seen)


def spend_night(schedule: Schedule, model: Model) -> Run:
    """Make the schedule due; run the scheduler, a worker session and the scheduler again; return the run."""
    Schedule.objects.filter(pk=schedule.pk).update(next_due_at=timezone.now() - timedelta(seconds=1))
    build_schedule().tick()
    run = schedule.runs.latest("pk")
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    build_schedule().tick()
    return run


def make_nightly_schedule(page: Page, run: Run, webhook: str) -> None:
    """Repeat a run every night, with an alert rule for drift."""
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("link", name="Save as schedule").click()
    page.get_by_label("Name", exact=True).fill("Nightly")
    page.get_by_label("Hour, UTC").fill("2")
    page.get_by_label("Requests per run").fill("200")
    page.get_by_label("Requests per month").fill("6000")
    page.get_by_role("button", name="Save schedule").click()
    page.get_by_role("form", name="New rule").get_by_role("combobox").select_option("drift")
    page.get_by_label("Webhook").fill(webhook)
    page.get_by_role("button", name="Add rule").click()
    expect(page.locator("main")).to_contain_text("webhook at 127.0.0.1")


def test_night_watch_alerts_once_when_model_degrades(
    browser_page: Page, clicks: ClickCounter, catalogue: None, start_server: StartScriptedServer, elsewhere: RunInThread
) -> None:
    page, degrading_model, webhook_server = browser_page, DegradingModel(), start_server(lambda seen: json_reply({}))
    model = make_scripted_model(start_server(degrading_model))
    first = launch_run(model, trials=TRIALS)
    elsewhere(run_worker_session, model).result()
    make_nightly_schedule(page, first, f"{webhook_server.base_url}/night")
    assert clicks.count <= 5
    schedule = Schedule.objects.get()

    for night in range(1, 7):
        degrading_model.degraded = night >= 4
        run = elsewhere(spend_night, schedule, model).result()
        assert len(webhook_server.seen) == (1 if night >= 4 else 0), night
        if night == 4:
            fourth = run

    body = json.loads(webhook_server.seen[0].body)
    assert body["run"] == fourth.pk
    assert f"success dropped by 100 points, since run {fourth.pk}." in body["text"]
    for path in ("/", f"/schedules/{schedule.pk}/"):
        page.goto(path)
        expect(page.get_by_text("success dropped by 100 points")).to_have_count(1)
    page.goto("/trend/")
    expect(page.locator("main")).to_contain_text("Down 100 points since")
    expect(page.locator("main")).to_contain_text("1 worse")
