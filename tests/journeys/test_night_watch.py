"""Somebody who is asleep: a nightly schedule tells when a model gets worse, once."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.models import Model, Run, Schedule
from toolbench.lab.schedule import build_schedule
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, json_reply, text_reply

TRIALS = 12


class DegradingModel:
    """A model that does its tasks until it is told to answer without a call."""

    def __init__(self) -> None:
        self.degraded = False

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        return text_reply("I cannot do that.") if self.degraded else answer_correctly(seen)


def spend_night(schedule: Schedule, model: Model) -> Run:
    """The schedule is due; the scheduler, a worker and the scheduler again do their jobs."""
    Schedule.objects.filter(pk=schedule.pk).update(next_due_at=timezone.now() - timedelta(seconds=1))
    build_schedule().tick()
    run = schedule.runs.latest("pk")
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    build_schedule().tick()
    return run


@pytest.mark.django_db(transaction=True)
def test_model_that_degrades_in_the_fourth_run_alerts_once(owner_client: Client) -> None:
    player = DegradingModel()
    with ScriptedServer(player) as endpoint, ScriptedServer(lambda seen: json_reply({})) as hook:
        model = make_scripted_model(endpoint)
        first = launch_run(model, trials=TRIALS)
        run_worker_session(model)
        sent = {"name": "Nightly", "rhythm": "nightly", "hour_utc": 2, "requests_per_run": 200}
        owner_client.post(f"/schedules/new/?run={first.pk}", sent | {"requests_per_month": 6000})
        schedule = Schedule.objects.get()
        rule = {"schedule": schedule.pk, "kind": "drift", "webhook": f"{hook.base_url}/night"}
        owner_client.post("/schedules/rules/new/", rule)

        for night in range(1, 7):
            player.degraded = night >= 4
            run = spend_night(schedule, model)
            assert len(hook.seen) == (1 if night >= 4 else 0), night
            if night == 4:
                fourth = run

        body = json.loads(hook.seen[0].body)
        assert body["run"] == fourth.pk
        assert f"success dropped by 100 points, since run {fourth.pk}." in body["text"]
        for path in ("/", f"/schedules/{schedule.pk}/"):
            assert read_html(owner_client.get(path)).count("success dropped by 100 points") == 1
        trend = read_html(owner_client.get("/trend/"))
        assert "Down 100 points since" in trend
        assert "<b>1</b> worse" in trend
