"""Export of bundles: members, offline pages, masked keys, private cases and memory."""

import io
import json
import os
import re
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import (
    make_cell,
    make_config,
    make_provider,
    make_run,
    make_step,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.lab.interchange.bundle.test_read import make_small_run
from tests.lab.interchange.bundle_bytes import read_members, write_bundle_bytes
from toolbench.lab.interchange.bundle.read import import_bundle
from toolbench.lab.interchange.bundle.selection import BundleError, UnknownRunError
from toolbench.lab.interchange.bundle.write import iter_bundle_chunks
from toolbench.lab.interchange.manifest import build_member, hash_evidence
from toolbench.lab.interchange.report.write import ReportError, iter_report_zip
from toolbench.lab.models import Run, StepBody
from toolbench.lab.traces import body_batches

pytestmark = pytest.mark.django_db
KEY = "sk-planted-0123456789abcdef"


def test_bundle_manifest_has_the_hash_of_every_member() -> None:
    bundle, manifest = write_bundle_bytes(make_small_run())
    members = read_members(bundle)
    assert json.loads(members["manifest.json"])["members"].keys() == members.keys() - {"manifest.json"}
    for name, member in manifest.members.items():
        assert member == build_member(members[name])
    assert manifest.evidence == hash_evidence(manifest.members)


def test_bundle_has_matrix_statistics_and_plans_with_intervals() -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    (row,) = json.loads(members["matrix.json"])["rows"]
    rate = row["success_given_an_answer"]
    assert (rate["k"], rate["n"], rate["rate"]) == (1, 2, 0.5)
    assert rate["low"] < 0.5 < rate["high"]
    (cell,) = json.loads(members["statistics.json"])["cells"]
    assert (cell["outcomes"], cell["p95_ms"]) == ({"pass": 1, "fail": 1}, None)
    for entry in (row, cell):
        assert [entry[f"p95_ms_{part}"] for part in ("value", "low", "high")] == [1020.0, 1010.0, None]
    plans = json.loads(members["plans.json"])
    assert [cell["simulated"], plans["simulated"]] == [False, False]
    assert plans["configurations"][0]["policy"]["max_turns"] == 12
    assert plans["configurations"][0]["origins"]["max_turns"] == "engine default"
    assert [tool["name"] for tool in plans["scenarios"][0]["tools"]][:2] == ["state_get", "state_patch"]


def test_bundle_pages_need_no_network_or_script_and_link_inside() -> None:
    members = read_members(write_bundle_bytes(make_small_run(simulated=True))[0])
    pages = {name: raw.decode() for name, raw in members.items() if name.endswith(".html")}
    assert set(pages) == {"index.html", "traces/000001.html", "traces/000002.html"}
    for name, text in pages.items():
        assert "<script" not in text
        assert "<b>Simulated.</b>" in text
        for target in re.findall(r'(?:href|src)="([^"#]+)"', text):
            inside = Path(name).parent / target
            assert target == "data:," or str(inside).replace("traces/../", "") in members
    assert "1/2" in pages["index.html"]
    assert re.search(r"\[\d+–\d+\]", pages["index.html"])
    assert "<style>" in pages["index.html"]


def test_bundle_page_of_a_trial_says_that_its_last_answer_is_cut() -> None:
    run = make_small_run()
    make_trial(run.cells.get(), "pass", final_text=b"a" * 30_000)
    recompute_stale_cells()
    members = read_members(write_bundle_bytes(run)[0])
    is_cut = [b"the evidence has the whole answer" in members[f"traces/{number:06}.html"] for number in (1, 2, 3)]
    assert is_cut == [False, False, True]


def test_bundle_masks_a_known_key_in_every_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    make_provider(key_source="environment", key_env="PLANTED")
    run = make_small_run(title=f"with {KEY}")
    key_bytes = b"\xff" + KEY.encode()
    trial = make_trial(
        run.cells.get(), "fail", sentence=f"It said {KEY}.", final_text=key_bytes, note=KEY, label="mine"
    )
    make_step(trial, bodies={"request": KEY.encode(), "response": key_bytes, "facts": {"text": KEY}})
    recompute_stale_cells()
    bundle, _ = write_bundle_bytes(run)
    copy = import_bundle(io.BytesIO(bundle), "bundle.zip", owner=None)
    for name, raw in read_members(bundle).items():
        assert KEY.encode() not in raw, name
    step = copy.trials.get(note="", sentence__startswith="It said").steps.get()
    assert bytes(step.body.response) == b"\xff" + b"*" * len(KEY)
    assert not copy.trials.filter(label="mine").exists()


def test_bundle_excludes_private_cases_unless_requested() -> None:
    run = make_small_run()
    private_cell = make_cell(run.configs.get(), "a_case_of_my_own")
    make_trials(private_cell, **{"pass": 3})
    bundle, manifest = write_bundle_bytes(run)
    reasons = {item.what: item.why for item in manifest.left_out}
    assert reasons["1 private test cases with 3 trials"] == "private test cases are exported only on request"
    assert not any(b"a_case_of_my_own" in raw for raw in read_members(bundle).values())
    (row,) = json.loads(read_members(bundle)["matrix.json"])["rows"]
    assert row["success_given_an_answer"]["n"] == 2
    full_bundle, full_manifest = write_bundle_bytes(run, private=True)
    assert len(full_manifest.members) > len(manifest.members)
    copy = import_bundle(io.BytesIO(full_bundle), "bundle.zip", owner=None)
    second_bundle, _ = write_bundle_bytes(copy)
    assert not any(b"a_case_of_my_own" in raw for raw in read_members(second_bundle).values())


def test_bundle_command_refuses_to_overwrite_and_to_import_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, path = make_small_run(), tmp_path / "bundle.zip"
    call_command("bundle", run.pk, "--out", path)
    assert "evidence" in capsys.readouterr().out
    with pytest.raises(CommandError, match="already exists"):
        call_command("bundle", run.pk, "--out", path)
    call_command("import_bundle", path)
    assert "imported: /runs/" in capsys.readouterr().out
    with pytest.raises(CommandError, match="imported already"):
        call_command("import_bundle", path)
    with pytest.raises(CommandError, match="There is no run 999"):
        call_command("bundle", 999, "--out", tmp_path / "other.zip")


def test_write_bundle_of_a_run_without_cells_says_so() -> None:
    with pytest.raises(BundleError, match=r"Run \d+ has no cell"):
        write_bundle_bytes(make_run(), private=True)


def test_bundle_of_private_cases_alone_is_refused() -> None:
    run = make_small_run()
    run.cells.update(scenario="a_case_of_my_own")
    with pytest.raises(BundleError, match="private"):
        write_bundle_bytes(run)


def make_big_run(trials: int, kibibytes: int) -> Run:
    """Make a run whose trials have one step each, with incompressible bytes."""
    run = make_run()
    cell = make_cell(make_config(run))
    for _ in range(trials):
        step = make_step(make_trial(cell, "pass"), bodies={"request": b"", "response": b"", "facts": {}})
        step.response_bytes = kibibytes << 10
        step.save()
        StepBody.objects.filter(step=step).update(response=os.urandom(kibibytes << 10))
    return run


@pytest.mark.parametrize("iter_chunks", [iter_bundle_chunks, iter_report_zip])
def test_download_reads_one_batch_of_bodies_at_a_time(
    iter_chunks: Callable[[int], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_batches, "MAX_BODY_BYTES", 1 << 20)
    runs = [make_big_run(trials, 512) for trials in (4, 16)]
    peaks = []
    assert sum(len(chunk) for chunk in iter_chunks(runs[0].pk)) > 0  # exclude what is built on first use
    for run in runs:
        tracemalloc.start()
        assert sum(len(chunk) for chunk in iter_chunks(run.pk)) > 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] <= 1.5 * peaks[0]


def test_iter_bundle_chunks_yields_each_large_body_separately() -> None:
    run = make_big_run(trials=8, kibibytes=1024)
    chunk_sizes = [len(chunk) for chunk in iter_bundle_chunks(run.pk)]
    assert len([size for size in chunk_sizes if size > 1 << 19]) == 8


@pytest.mark.parametrize(
    ("iter_chunks", "error_type"), [(iter_bundle_chunks, UnknownRunError), (iter_report_zip, ReportError)]
)
def test_download_of_a_run_deleted_meanwhile_is_complete(
    iter_chunks: Callable[[int], Iterator[bytes]], error_type: type[Exception]
) -> None:
    run = make_small_run()
    chunks = iter_chunks(run.pk)
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    with zipfile.ZipFile(io.BytesIO(b"".join(chunks))) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) > 2
    with pytest.raises(error_type):
        iter_chunks(run.pk)
