"""Import of logs of Inspect AI: samples as trials, model and tool calls as steps, scores as verdicts."""

import io
import json
import sys
import tracemalloc
from typing import Any

import pytest

if sys.version_info >= (3, 14):
    from zipfile import ZIP_ZSTANDARD, ZipFile
else:
    from backports.zstd.zipfile import ZIP_ZSTANDARD, ZipFile

from tests.lab.interchange.bundle_bytes import zip_members
from toolbench.lab.interchange import create_run
from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.inspect_ai import steps
from toolbench.lab.interchange.inspect_ai.log import START_NAME
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.metrics.retries import TRIAL_RETRY_COLUMNS, annotate_retry_counts
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Run, StepBody
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.traces.trial_text import build_trial_texts

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
        "usage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15},
    },
}
RAW = {"request": {"model": "m"}, "response": {"id": "r"}, "call_refs": [[0, 1]], "call_key": "messages"}
TOOL = {"event": "tool", "timestamp": "2026-03-01T10:00:02+00:00", "id": "c1", "function": "search", "arguments": {}}


def make_sample(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "events": [MODEL, TOOL | {"result": "found"}, MODEL | {"call": RAW}],
        "events_data": {"messages": [{"role": "user", "content": "a table"}], "calls": [{"role": "user"}]},
        "attachments": {"big": "a long text"},
        "output": {"completion": "Done."},
        "scores": {"match": {"value": "C", "answer": "Done.", "explanation": "Done.", "history": []}},
        "model_usage": {"vendor/model-a": {"input_tokens_cache_read": 4, "reasoning_tokens": 1}},
    } | fields


def write_archive(*samples: dict[str, Any]) -> bytes:
    """Return a log as Inspect AI writes it: compressed by zstd, with the header after the samples."""
    members = {
        f"samples/{sample['id']}_epoch_{sample['epoch']}.json": json.dumps(sample).encode() for sample in samples
    }
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_ZSTANDARD) as zip_file:
        for name, content in ({START_NAME: b"{}"} | members | {"header.json": json.dumps(HEADER).encode()}).items():
            zip_file.writestr(name, content)
    return file.getvalue()


def import_log(raw: bytes, name: str = "log.eval") -> Run:
    return import_run(io.BytesIO(raw), name, owner=None)


def test_import_log_makes_trials_with_the_outcomes_of_the_scores() -> None:
    samples = [
        make_sample(1),
        make_sample(2, scores={"match": {"value": "I", "explanation": "wrong day"}}),
        make_sample(3, scores={"match": {"value": 0.5}}),
        make_sample(4, error={"message": "RuntimeError('timed out')", "traceback": "…"}),
        make_sample(5, error={"message": "CancelledError('Cancelled via cancel scope')"}, scores=None),
        make_sample(6, limit={"type": "message", "limit": 4.0, "reason": "Message limit exceeded. count: 5; limit: 4"}),
    ]
    run = import_log(write_archive(*samples))
    assert (run.imported, run.title, run.origin["kind"]) == (True, "Book a Table (Inspect AI)", "inspect")
    trials = list(run.trials.order_by("position"))
    assert [trial.outcome for trial in trials] == ["pass", "fail", "na", "infra", "cancelled", "pass"]
    assert trials[5].sentence == "Message limit exceeded. count: 5; limit: 4."
    assert (trials[0].cached_tokens, trials[0].reasoning_tokens) == (4, 1)
    assert trials[1].sentence == "The scorer match returned I: wrong day"
    assert run.cells.get().scenario == "inspect_book_a_table"


@pytest.mark.parametrize("fields", [{}, {"events": []}, {"events": [MODEL | {"error": "429"}]}])
def test_import_log_leaves_retries_unknown(fields: dict[str, Any]) -> None:
    run = import_log(write_archive(make_sample(1, **fields)))
    assert tally_cells(run.cells.all()).retries_json is None
    (row,) = annotate_retry_counts(run.trials.all())
    assert {getattr(row, name) for name in TRIAL_RETRY_COLUMNS} == {None}


def test_import_log_makes_steps_with_restored_attachments() -> None:
    trial = import_log(write_archive(make_sample(1))).trials.get()
    first, tool, second = trial.steps.select_related("body")
    assert json.loads(bytes(first.body.request))["messages"] == [{"role": "user", "content": "a table"}]
    assert "a long text" in bytes(first.body.facts).decode()
    assert (tool.kind, tool.tool_name, bytes(tool.body.response)) == ("tool", "search", b"found")
    assert json.loads(bytes(second.body.request)) == {"model": "m", "messages": [{"role": "user"}]}
    assert (first.input_tokens, second.started_ms) == (12, 0.0)
    assert [step.ordinal for step in (first, tool, second)] == [1, 2, 3]
    page = get_trial_page(trial.pk, TrialFilter())
    assert [line.part for turn in page.timeline for line in turn.rows][:4] == [
        "request",
        "response",
        "transforms",
        "calls",
    ]


def test_import_log_request_is_in_the_search_text() -> None:
    trial = import_log(write_archive(make_sample(1, events=[MODEL]))).trials.get()
    assert "a table" in build_trial_texts([trial.pk])[trial.pk].splitlines()


def test_import_log_epochs_share_an_instance_and_failed_tools_are_not_ok() -> None:
    failed_tool = TOOL | {"result": "", "failed": True}
    run = import_log(
        write_archive(
            make_sample(1), make_sample(1, epoch=2), make_sample(2, events=[MODEL, failed_tool], error_retries=[{}])
        )
    )
    first, second_epoch, other = run.trials.order_by("position")
    assert first.instance_seed == second_epoch.instance_seed != other.instance_seed
    assert other.error_hint == "sample 2, epoch 1, attempt 2"
    assert [step.ok for step in other.steps.all()] == [True, False]


def test_import_log_reads_options_that_are_no_numbers_as_unknown() -> None:
    spec = {"task": "t", "model_generate_config": {"temperature": float("nan"), "seed": 1, "stop_seqs": ["a"]}}
    log = HEADER | {"eval": spec, "status": "odd\0\ud800", "samples": [make_sample(1)]}
    run = import_log(json.dumps(log).encode(), "log.json")
    assert run.configs.get().options == {"temperature": None, "seed": 1}
    assert run.stopped_reason == "status odd␀?"


def test_import_log_reads_json_logs_too() -> None:
    run = import_log(json.dumps(HEADER | {"samples": [make_sample(1), make_sample(2)]}).encode(), "log.json")
    assert run.trials.count() == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"garbage", "cannot be read as a zip archive or as JSON"),
        (b'{"eval": {}, "x": ' + b"[" * 1000 + b"]" * 1000 + b"}", "as JSON: it is nested deeper than"),
        (b"{}", "has no `eval`"),
        (zip_members({"a": b"b"}), "no header.json"),
        (zip_members({"header.json": b"["}), "cannot be read as JSON"),
    ],
)
def test_import_log_refuses_what_is_no_log_and_stores_nothing(raw: bytes, reason: str) -> None:
    with pytest.raises(RunImportError, match="Nothing was imported") as raised:
        import_log(raw)
    assert reason in str(raised.value)
    assert not Run.objects.exists()


def measure_peak_bytes(raw: bytes, name: str) -> int:
    """Import a log and return the peak memory in bytes without the file itself."""
    file = io.BytesIO(raw)
    tracemalloc.start()
    import_run(file, name, owner=None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_import_log_keeps_one_sample_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON log is held as bytes and text, but no sample twice as an object; an archive is held as neither."""
    monkeypatch.setattr(create_run, "TRIALS_PER_BATCH", 5)
    few_samples, many_samples = ([make_sample(n, padding=[[n]] * 5000) for n in range(count)] for count in (10, 40))
    logs = [json.dumps(HEADER | {"samples": samples}).encode() for samples in (few_samples, many_samples)]
    import_log(logs[0].replace(b"Book", b"Look"), "log.json")  # exclude what is built on first use
    small, large = (measure_peak_bytes(log, "log.json") for log in logs)
    assert large - small <= 3 * (len(logs[1]) - len(logs[0]))
    archives = [write_archive(*samples) for samples in (few_samples, many_samples)]
    small, large = (measure_peak_bytes(archive, "log.eval") for archive in archives)
    assert large <= 1.5 * small


@pytest.mark.parametrize(
    "fields",
    [
        {"attachments": {"big": "x" * 1000}, "events": [MODEL] * 50},
        {"events": [MODEL | {"input_refs": [[0, 1]] * 11}]},
        {"events": [MODEL | {"call": {"request": {"numbers": [0] * 300}, "response": {}}}]},
    ],
)
def test_import_log_refuses_references_over_the_limits(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_RESOLVED_CHARS", 20_000)
    monkeypatch.setattr(steps, "MAX_MESSAGES", 10)
    with pytest.raises(RunImportError, match=r"too large: at most \d+ MB in memory|refers to more than 10 messages"):
        import_log(write_archive(make_sample(1, **fields)))
    assert not Run.objects.exists()


def test_import_log_keeps_reference_to_attachment_that_is_no_text() -> None:
    call = {"request": {"x": "attachment://a"}, "response": {}}
    import_log(
        write_archive(make_sample(1, attachments={"a": ["attachment://a"] * 2}, events=[MODEL | {"call": call}]))
    )
    body = StepBody.objects.get()
    assert json.loads(bytes(body.request)) == {"x": "attachment://a"}


def test_trials_with_large_columns_are_batches_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create_run, "MAX_BATCH_BYTES", 1000)
    trials = [create_run.NewTrial(0, 0, {"verdict": {"text": "x" * size}}, ()) for size in (2000, 2000, 10, 10)]
    assert [len(batch) for batch in create_run._iter_batches(trials)] == [1, 1, 2]
