"""Logs of Inspect AI: samples are trials, model calls and tool calls are steps, and their scores are the verdicts."""

import io
import json
from typing import Any

import pytest

from tests.lab.bundles.bundles import zipped
from toolbench.lab.bundles.opening import ImportRefused
from toolbench.lab.importing import import_run
from toolbench.lab.models import Run
from toolbench.lab.trace import get_trace
from toolbench.lab.trials import TrialFilter

pytestmark = pytest.mark.django_db
HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "Book a Table", "model": "vendor/model-a", "created": "2026-03-01T10:00:00+00:00"},
}
CALL = {"id": "c1", "function": "search", "arguments": {"q": "attachment://big"}}
MODEL = {
    "event": "model",
    "timestamp": "2026-03-01T10:00:01+00:00",
    "model": "vendor/model-a",
    "input": [],
    "input_refs": [[0, 1]],
    "working_time": 0.5,
    "output": {
        "model": "vendor/model-a",
        "choices": [
            {"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "stop_reason": "tool_calls"}
        ],
        "usage": {"input_tokens": 12, "output_tokens": 3},
    },
}
RAW = {"request": {"model": "m"}, "response": {"id": "r"}, "call_refs": [[0, 1]], "call_key": "messages"}
TOOL = {"event": "tool", "timestamp": "2026-03-01T10:00:02+00:00", "id": "c1", "function": "search", "arguments": {}}


def sample(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "events": [MODEL, TOOL | {"result": "found"}, MODEL | {"call": RAW}],
        "events_data": {"messages": [{"role": "user", "content": "a table"}], "calls": [{"role": "user"}]},
        "attachments": {"big": "a long text"},
        "output": {"completion": "Done."},
        "scores": {"match": {"value": "C"}},
    } | fields


def archive(*samples: dict[str, Any]) -> bytes:
    members = {f"samples/{one['id']}_epoch_1.json": json.dumps(one).encode() for one in samples}
    return zipped({"header.json": json.dumps(HEADER).encode()} | members)


def logged(raw: bytes, name: str = "log.eval") -> Run:
    return import_run(io.BytesIO(raw), name, owner=None)


def test_samples_are_trials_judged_by_their_own_scores() -> None:
    given = [
        sample(1),
        sample(2, scores={"match": {"value": "I", "explanation": "wrong day"}}),
        sample(3, scores={"match": {"value": 0.5}}),
        sample(4, error={"message": "timed out"}),
    ]
    run = logged(archive(*given))
    assert (run.imported, run.title, run.origin["kind"]) == (True, "Book a Table (Inspect AI)", "inspect")
    trials = list(run.trials.order_by("position"))
    assert [trial.outcome for trial in trials] == ["pass", "fail", "na", "infra"]
    assert trials[1].sentence == "The scorer match said I wrong day"
    assert run.cells.get().scenario == "inspect_book_a_table"


def test_model_calls_and_tool_calls_are_steps_with_pools_and_attachments_put_back() -> None:
    trial = logged(archive(sample(1))).trials.get()
    first, tool, second = trial.steps.select_related("body")
    assert json.loads(bytes(first.body.request))["messages"] == [{"role": "user", "content": "a table"}]
    assert "a long text" in bytes(first.body.facts).decode()
    assert (tool.kind, tool.tool_name, bytes(tool.body.response)) == ("tool", "search", b"found")
    assert json.loads(bytes(second.body.request)) == {"model": "m", "messages": [{"role": "user"}]}
    assert (first.input_tokens, second.started_ms) == (12, 0.0)
    trace = get_trace(trial.pk, TrialFilter())
    assert [line.part for turn in trace.rail for line in turn.steps][:4] == [
        "request",
        "response",
        "transforms",
        "calls",
    ]


def test_a_json_log_is_read_in_the_same_way() -> None:
    run = logged(json.dumps(HEADER | {"samples": [sample(1), sample(2)]}).encode(), "log.json")
    assert run.trials.count() == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"garbage", "neither a zip archive nor JSON"),
        (b"{}", "has no `eval`"),
        (zipped({"a": b"b"}), "no header.json"),
        (zipped({"header.json": b"["}), "is no JSON"),
    ],
)
def test_what_is_no_log_is_refused_and_nothing_is_kept(raw: bytes, reason: str) -> None:
    with pytest.raises(ImportRefused, match="Nothing was imported") as refused:
        logged(raw)
    assert reason in str(refused.value)
    assert not Run.objects.exists()
