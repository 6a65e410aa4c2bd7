"""One endpoint that reports figures nobody can believe, beside an innocent one: both runs end, and every page shows
both."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.engine.streams import render_as_stream
from tests.engine.wire_formats.anthropic.events import build_message, list_events, render_event
from tests.extreme_numbers import EXTREME_NUMBERS
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from tests.web.run_urls import list_failed_urls
from toolbench.lab import builtin_data
from toolbench.lab.models import Cell, Run, Step, Trial
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, chat_reply

pytestmark = pytest.mark.django_db(transaction=True)
EACH = 2  # trials in which the same value is reported: their sums have to fit, too
TOKENS = {
    "prompt_tokens": "@",
    "completion_tokens": "@",
    "total_tokens": "@",
    "prompt_tokens_details": {"cached_tokens": "@"},
    "completion_tokens_details": {"reasoning_tokens": "@"},
    "cost": "@",
}
CLAUDES = {
    "input_tokens": "@",
    "cache_read_input_tokens": "@",
    "cache_creation_input_tokens": "@",
    "output_tokens": "@",
    "output_tokens_details": {"thinking_tokens": "@"},
}


def chat(asked: dict[str, Any]) -> bytes:
    whole = chat_reply({"role": "assistant", "content": "Done."}, usage=TOKENS, created="@").body
    assert isinstance(whole, bytes)
    return render_as_stream(whole) if asked.get("stream") else whole


def messages(asked: dict[str, Any]) -> bytes:
    whole = build_message({"type": "text", "text": "Done."}, usage=CLAUDES)
    whole["usage"] = CLAUDES
    return b"".join(map(render_event, list_events(whole))) if asked.get("stream") else json.dumps(whole).encode()


class Reports:
    """Says "Done." with one value after the other in every figure of its usage."""

    def __init__(self, body: Callable[[dict[str, Any]], bytes]) -> None:
        self._body = body
        self._asked: dict[bool, int] = {True: 0, False: 0}

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        asked = seen.json()
        stream = bool(asked.get("stream"))
        literal = EXTREME_NUMBERS[self._asked[stream] // EACH % len(EXTREME_NUMBERS)]
        self._asked[stream] += 1
        head = {"content-type": "text/event-stream" if stream else "application/json", "connection": "close"}
        return ScriptedReply(200, head, self._body(asked).replace(b'"@"', literal.encode()))


def assert_bounded(run: Run) -> None:
    tokens = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    rows: list[Any] = [*Trial.objects.filter(run=run), *Step.objects.filter(trial__run=run)]
    for row in rows:
        for name in tokens:
            assert 0 <= (getattr(row, name, 0) or 0) <= 10**9, (row, name)
        assert row.cost is None or 0 <= row.cost <= 10**6


@pytest.mark.parametrize(("wire", "body"), [("chat", chat), ("anthropic", messages)])
def test_implausible_figures_stop_no_other_run(
    wire: str, body: Callable[[dict[str, Any]], bytes], owner_client: Client
) -> None:
    builtin_data.load_builtin_data()
    with ScriptedServer(Reports(body)) as hostile, ScriptedServer(answer_correctly) as friendly:
        poisoned_model = make_scripted_model(hostile, "hostile", wire=wire)
        innocent_model = make_scripted_model(friendly, "friendly")
        many = {"scenarios": ("chat_only",), "streams": (False, True), "trials": EACH * len(EXTREME_NUMBERS)}
        poisoned = launch_run(poisoned_model, **many)
        innocent = launch_run(innocent_model, scenarios=("happy_path", "chat_only"), trials=2)
        run_worker_session(poisoned_model)
        run_worker_session(innocent_model)
    for run in (poisoned, innocent):
        run.refresh_from_db()
        assert (run.state, run.trials.exclude(outcome="pass").count()) == (Run.State.FINISHED, 0)
        assert list_failed_urls(owner_client, run, innocent if run == poisoned else poisoned) == []
    assert not Cell.objects.filter(stale=True).exists()
    assert_bounded(poisoned)
    for trial in poisoned.trials.all():
        page = read_html(owner_client.get(f"/trials/{trial.pk}/?step=1.response"))
        step = trial.steps.select_related("body").get()
        assert ("usage_implausible" in page) is (b"usage_implausible" in bytes(step.body.facts)), page
    facts = [json.loads(bytes(step.body.facts)) for step in Step.objects.filter(trial__run=poisoned)]
    told = [any(item["code"] == "usage_implausible" for item in found["findings"]) for found in facts]
    plausible = 4 if wire == "chat" else 3  # 0, 10^9 and null; in a chat, an object without the figures, too
    assert len(told) == 2 * EACH * len(EXTREME_NUMBERS)
    assert told.count(False) <= 2 * EACH * plausible
