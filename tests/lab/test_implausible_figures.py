"""An endpoint that reports implausible figures beside a correct one: both runs end, and every page shows both."""

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
TRIALS_PER_VALUE = 2  # their sums must be in range, too
CHAT_TOKENS = {
    "prompt_tokens": "@",
    "completion_tokens": "@",
    "total_tokens": "@",
    "prompt_tokens_details": {"cached_tokens": "@"},
    "completion_tokens_details": {"reasoning_tokens": "@"},
    "cost": "@",
}
ANTHROPIC_TOKENS = {
    "input_tokens": "@",
    "cache_read_input_tokens": "@",
    "cache_creation_input_tokens": "@",
    "output_tokens": "@",
    "output_tokens_details": {"thinking_tokens": "@"},
}


def render_chat(request: dict[str, Any]) -> bytes:
    whole = chat_reply({"role": "assistant", "content": "Done."}, usage=CHAT_TOKENS, created="@").body
    assert isinstance(whole, bytes)
    return render_as_stream(whole) if request.get("stream") else whole


def render_messages(request: dict[str, Any]) -> bytes:
    whole = build_message({"type": "text", "text": "Done."}, usage=ANTHROPIC_TOKENS)
    whole["usage"] = ANTHROPIC_TOKENS
    return b"".join(map(render_event, list_events(whole))) if request.get("stream") else json.dumps(whole).encode()


class ExtremeUsageServer:
    """Server that answers "Done." with one extreme value after the other in every figure of its usage."""

    def __init__(self, body: Callable[[dict[str, Any]], bytes]) -> None:
        self._body = body
        self._asked: dict[bool, int] = {True: 0, False: 0}

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        request = seen.json()
        stream = bool(request.get("stream"))
        literal = EXTREME_NUMBERS[self._asked[stream] // TRIALS_PER_VALUE % len(EXTREME_NUMBERS)]
        self._asked[stream] += 1
        head = {"content-type": "text/event-stream" if stream else "application/json", "connection": "close"}
        return ScriptedReply(200, head, self._body(request).replace(b'"@"', literal.encode()))


def assert_bounded(run: Run) -> None:
    tokens = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    rows: list[Any] = [*Trial.objects.filter(run=run), *Step.objects.filter(trial__run=run)]
    for row in rows:
        for name in tokens:
            assert 0 <= (getattr(row, name, 0) or 0) <= 10**9, (row, name)
        assert row.cost is None or 0 <= row.cost <= 10**6


@pytest.mark.parametrize(("wire", "body"), [("chat", render_chat), ("anthropic", render_messages)])
def test_session_with_implausible_figures_affects_no_other_run(
    wire: str, body: Callable[[dict[str, Any]], bytes], owner_client: Client
) -> None:
    builtin_data.load_builtin_data()
    with ScriptedServer(ExtremeUsageServer(body)) as hostile, ScriptedServer(answer_correctly) as friendly:
        extreme_model = make_scripted_model(hostile, "hostile", wire=wire)
        plausible_model = make_scripted_model(friendly, "friendly")
        fields = {
            "scenarios": ("chat_only",),
            "streams": (False, True),
            "trials": TRIALS_PER_VALUE * len(EXTREME_NUMBERS),
        }
        extreme_run = launch_run(extreme_model, **fields)
        plausible_run = launch_run(plausible_model, scenarios=("happy_path", "chat_only"), trials=2)
        run_worker_session(extreme_model)
        run_worker_session(plausible_model)
    for run in (extreme_run, plausible_run):
        run.refresh_from_db()
        assert (run.state, run.trials.exclude(outcome="pass").count()) == (Run.State.FINISHED, 0)
        assert list_failed_urls(owner_client, run, plausible_run if run == extreme_run else extreme_run) == []
    assert not Cell.objects.filter(stale=True).exists()
    assert_bounded(extreme_run)
    for trial in extreme_run.trials.all():
        page = read_html(owner_client.get(f"/trials/{trial.pk}/?step=1.response"))
        step = trial.steps.select_related("body").get()
        assert ("usage_implausible" in page) is (b"usage_implausible" in bytes(step.body.facts)), page
    facts = [json.loads(bytes(step.body.facts)) for step in Step.objects.filter(trial__run=extreme_run)]
    has_finding = [any(item["code"] == "usage_implausible" for item in found["findings"]) for found in facts]
    plausible = 4 if wire == "chat" else 3  # 0, 10^9 and null; in chat completions also an object without the figures
    assert len(has_finding) == 2 * TRIALS_PER_VALUE * len(EXTREME_NUMBERS)
    assert has_finding.count(False) <= 2 * TRIALS_PER_VALUE * plausible
