"""Import of bundles: equal rows, a scope for imported runs, and refusal of invalid files."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.factories import (
    make_cell,
    make_config,
    make_provider,
    make_run,
    make_step,
    make_trial,
    recompute_stale_cells,
)
from tests.lab.interchange.bundle_bytes import read_members, reseal_members, write_bundle_bytes, zip_members
from tests.lab.interchange.traffic.test_drafts import build_nested
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.lab.interchange.bundle.read import import_bundle
from toolbench.lab.interchange.safe_zip import RunImportError, UnpackLimits
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.times import load_cell_times, merge_times
from toolbench.lab.models import Run, StepBody, Trial
from toolbench.lab.replays.check import check_replay
from toolbench.lab.results.home import get_home_page
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.run.index import get_runs
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial.step_details import build_step_view
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.traces.taxonomy_steps import load_wire_steps
from toolbench.providers.scripted_server import ScriptedServer

BUNDLE_OF_VERSION_1 = Path(__file__).resolve().parents[2] / "data" / "bundle_version_1.zip"
NON_UTF8_BODY = bytes(range(256)) + "NUL \x00 and 😀".encode()


def import_bytes(bundle: bytes, **options: Any) -> Run:
    return import_bundle(io.BytesIO(bundle), "bundle.zip", owner=None, **options)


def make_small_run(**fields: Any) -> Run:
    """Make a run with one failed and one passed trial, whose responses are not UTF-8."""
    run = make_run(**fields)
    cell = make_cell(make_config(run))
    for outcome in ("fail", "pass"):
        trial = make_trial(cell, outcome)
        make_step(trial, bodies={"request": b'{"model":"a"}', "response": NON_UTF8_BODY, "facts": {"calls": []}})
    recompute_stale_cells()
    return run


@pytest.mark.django_db(transaction=True)
def test_import_bundle_reexported_has_the_same_evidence() -> None:
    with ScriptedServer(answer_correctly) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=2)
        run_worker_session(model)
    first, manifest = write_bundle_bytes(run)
    copy = import_bytes(first)
    _, second_manifest = write_bundle_bytes(copy)
    assert manifest.evidence == second_manifest.evidence
    compared_names = {name for name in manifest.members if name != "index.html"}  # the index has the time of writing
    assert {name: manifest.members[name] for name in compared_names} == {
        name: second_manifest.members[name] for name in compared_names
    }
    assert (copy.imported, copy.trial_count) == (True, 6)
    assert set(copy.cells.values_list("cost", flat=True)) == {0.0}
    check = check_replay(copy.pk)
    assert (check.same, check.differing, check.unknown) == (6, (), ())
    assert sum(cell.passed for cell in copy.cells.all()) == sum(cell.passed for cell in run.cells.all()) > 0


def write_bundle_with_bad_case(name: str) -> bytes:
    """Return a bundle whose case expects a call of a tool that does not exist."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    definition = json.dumps({"tools": [tool], "messages": "hi", "expect": {"calls": [{"name": name}]}})
    case = {"slug": "x", "title": "X", "kind": "own", "definition": definition, "version": 1, "public": False}
    members = read_members(write_bundle_bytes(make_small_run())[0])
    return reseal_members(members | {"evidence/cases.json": json.dumps({"cases": [case]}).encode()})


@pytest.mark.django_db
@pytest.mark.parametrize("value", [True, 1, "all"])
def test_import_bundle_refuses_private_that_is_no_list(value: Any) -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    run_json = json.loads(members["evidence/run.json"]) | {"private": value}
    with pytest.raises(RunImportError, match="private is not a list"):
        import_bytes(reseal_members(members | {"evidence/run.json": json.dumps(run_json).encode()}))


@pytest.mark.django_db
def test_import_bundle_refuses_an_infinite_size() -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    manifest = re.sub(rb'"bytes": \d+', b'"bytes": 1e400', members["manifest.json"])
    with pytest.raises(RunImportError, match="OverflowError"):
        import_bytes(zip_members(members | {"manifest.json": manifest}))


@pytest.mark.django_db
def test_import_bundle_keeps_every_byte_of_the_bodies() -> None:
    copy = import_bytes(write_bundle_bytes(make_small_run())[0])
    bodies = StepBody.objects.filter(step__trial__run=copy)
    assert {(bytes(body.request), bytes(body.response)) for body in bodies} == {(b'{"model":"a"}', NON_UTF8_BODY)}


@pytest.mark.django_db
def test_import_bundle_run_is_only_in_the_imported_scope() -> None:
    run = make_small_run()
    copy = import_bytes(write_bundle_bytes(run)[0])
    ids = [row.run_ids for row in get_matrix(MatrixQuery(scope="real")).rows]
    assert ids == [(run.pk,)]
    imported_scope = get_matrix(MatrixQuery(scope="imported"))
    assert [row.run_ids for row in imported_scope.rows] == [(copy.pk,)]
    assert imported_scope.warnings[0] == "Some of these runs were imported: they were not made here."
    assert get_trials(TrialFilter()).total == get_trials(TrialFilter(imported="1")).total == 2
    assert [line.run.pk for line in get_runs("own")] == [run.pk]
    assert [line.run.pk for line in get_runs("imported")] == [copy.pk]
    assert [row.run.pk for row in get_home_page().recent] == [run.pk]


@pytest.mark.django_db
def test_import_bundle_trace_can_be_opened() -> None:
    copy = import_bytes(write_bundle_bytes(make_small_run())[0])
    trial = copy.trials.get(outcome="fail")
    page = get_trial_page(trial.pk, TrialFilter())
    assert page.headline == "The patch was refused and never sent again."
    assert [line.part for turn in page.timeline for line in turn.rows][:2] == ["request", "response"]


@pytest.mark.django_db
def test_import_bundle_ignores_the_choice_to_keep_bodies() -> None:
    run = make_small_run()
    _, manifest = write_bundle_bytes(run)
    Run.objects.filter(pk=run.pk).update(keeps_bodies=True)
    bundle, manifest_with_choice = write_bundle_bytes(run)
    assert manifest_with_choice.evidence == manifest.evidence
    assert not import_bytes(bundle).keeps_bodies


@pytest.mark.django_db
def test_import_bundle_refuses_evidence_imported_before() -> None:
    bundle = write_bundle_bytes(make_small_run())[0]
    first = import_bytes(bundle)
    with pytest.raises(RunImportError, match=f"imported already, as run {first.pk}"):
        import_bytes(bundle)
    assert Run.objects.filter(imported=True).count() == 1


def _without(members: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {key: content for key, content in members.items() if key != name}


@pytest.mark.django_db
def test_import_bundle_of_version_1_uses_order_statistics() -> None:
    """The last version that interpolated wrote the bundle: its statistics.json has p50 at 3,000 ms."""
    content = BUNDLE_OF_VERSION_1.read_bytes()
    members = read_members(content)
    assert json.loads(members["manifest.json"])["version"] == 1
    run = import_bytes(content)
    cells = tuple(run.cells.order_by("position"))
    assert [(cell.passed, cell.p50_ms, cell.p95_ms) for cell in cells] == 2 * [(4, 2000.0, 8000.0)]
    times = merge_times(load_cell_times(cells).values())
    assert render_quantile(times.p50) == "2.0 s [1.0 – 8.0, n = 8]"
    older, newer = (
        json.loads(found["statistics.json"])["cells"] for found in (members, read_members(write_bundle_bytes(run)[0]))
    )
    for before, after in zip(older, newer, strict=True):
        assert before.keys() <= after.keys()
        assert (before["p50_ms"], after["p50_ms"], after["p50_ms_value"]) == (3000.0, 2000.0, 2000.0)
        assert (before["p95_ms"], after["p95_ms"], after["p95_ms_value"]) == (None, None, 8000.0)


@pytest.mark.django_db
def test_import_bundle_refuses_what_is_no_bundle_with_a_reason() -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    cases = {
        b"no zip at all": "not a complete zip archive",
        zip_members({"a.txt": b"x"}): "The file has no manifest.json",
        zip_members(members | {"manifest.json": b"{"}): "manifest.json cannot be read",
        zip_members(members | {"manifest.json": b'{"format": "x"}'}): "its format is 'x'",
        zip_members(members)[:-200]: "it is truncated or has another format",
        zip_members(members | {"manifest.json": members["manifest.json"].replace(b'"version": 2', b'"version": 3')}): (
            "its version is 3, and Toolbench reads 1 and 2"
        ),
        zip_members(members | {"manifest.json": members["manifest.json"].replace(b"sha256", b"sha257", 1)}): (
            "has no 'sha256'"
        ),
        zip_members(members | {"../../etc/cron.d/x": b"x"}): "points outside the file",
        zip_members(members | {"extra.txt": b"x"}): "'extra.txt' is not listed in the manifest",
        zip_members(_without(members, "plans.json")): "'plans.json' is listed in the manifest but missing",
        zip_members(members | {"evidence/run.json": b"{}"}): "'evidence/run.json' was changed after it was written",
    }
    for content, reason in cases.items():
        with pytest.raises(RunImportError, match="Nothing was imported") as raised:
            import_bytes(content)
        assert reason in str(raised.value)
    assert not Run.objects.filter(imported=True).exists()


@pytest.mark.django_db
def test_import_bundle_stores_a_file_name_that_is_not_utf8() -> None:
    bundle = io.BytesIO(write_bundle_bytes(make_small_run())[0])
    assert import_bundle(bundle, "b\udcff.zip", owner=None).origin["file"] == "b?.zip"


@pytest.mark.django_db
def test_import_bundle_refuses_files_over_the_unpack_limits() -> None:
    bundle = write_bundle_bytes(make_small_run())[0]
    for limits, reason in (
        (UnpackLimits(members=3), "members; the limit is 3"),
        (UnpackLimits(member_bytes=100), "the limit is 100"),
        (UnpackLimits(bytes=1000), "exceeds the limit"),
    ):
        with pytest.raises(RunImportError, match=reason):
            import_bytes(bundle, limits=limits)
    bomb = zip_members({"manifest.json": b"0" * (20 << 20)})
    with pytest.raises(RunImportError, match="exceeds the limit"):
        import_bytes(bomb)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("trial", "outcome"), "splendid", "outcome has an unknown value"),
        (("trial", "turns"), "many", "turns has the wrong type"),
        (("trial", "sentence"), "a\x00b", "cannot contain NUL"),
        (("trial", "instance_seed"), 2**70, "instance_seed cannot be stored"),
        (("trial", "verdict"), {"rule": "\x00"}, "Nothing was imported"),
        (("trial", "verdict"), ["good"], "verdict has the wrong shape"),
        (("trial", "verdict"), {"checks": [7]}, "verdict has the wrong shape"),
        (("trial", "verdict"), build_nested(300), "it is nested deeper than 256 levels"),
        (("trial", "verdict"), build_nested(600), "it is nested deeper than 256 levels"),
        (("trial", "causes"), [{"code": "x", "count": "many"}], "causes has the wrong shape"),
        (("trial", "left_out"), [{"name": []}], "left_out has the wrong shape"),
        (("trial", "valid_calls"), 99, "cannot be counted as “valid calls / calls”"),
        (("config",), 7, "there is no row 7"),
        (("steps",), "none", "steps is not a list of objects"),
        *(
            (("steps", 0, "body", "facts"), {"text": facts}, "facts has the wrong shape")
            for facts in (
                "no JSON",
                "[]",
                '{"chunks": 3}',
                '{"chunks": [[0.5, 2.0]]}',
                '{"calls": [{"id": "a"}]}',
                '{"error": {"code": "timeout"}}',
                '{"findings": [{"code": "x"}]}',
                '{"response_changes": [{"name": "x"}]}',
                '{"envelope": {"ok": "yes"}}',
                '{"parse_errors": [{"mode": "native", "error": "e", "snippet": "s", "repairs": [1]}]}',
                '{"schema_errors": [{"path": "$", "kind": "type"}]}',
                f'{{"message": {{"a": {"[" * 300}{"]" * 300}}}}}',
            )
        ),
    ],
)
def test_import_bundle_with_an_invalid_row_imports_nothing(
    path: tuple[str | int, ...], value: Any, reason: str
) -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    trial = json.loads(members["evidence/trials/000002.json"])
    parent: Any = trial
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    bundle = reseal_members(members | {"evidence/trials/000002.json": json.dumps(trial).encode()})
    counts_before = (Run.objects.count(), Trial.objects.count())
    with pytest.raises(RunImportError, match="Nothing was imported") as raised:
        import_bytes(bundle)
    assert reason in str(raised.value)
    assert (Run.objects.count(), Trial.objects.count()) == counts_before


@pytest.mark.django_db
def test_import_bundle_accepts_unusual_step_details() -> None:
    run = make_small_run()
    arguments: Any = {"\ud800": "\x00", "nan": float("nan")}
    for _ in range(120):
        arguments = {"deep": arguments}
    error = {"code": "timeout", "message": "Late.", "mood": "of a later version"}
    facts = {"calls": [{"id": None, "name": "f", "arguments": arguments}], "error": error, "partial": {}}
    make_step(run.trials.order_by("pk")[0], bodies={"facts": facts})
    copy = import_bytes(write_bundle_bytes(run)[0])
    assert StepBody.objects.filter(step__trial__run=copy, facts=json.dumps(facts).encode()).exists()


@pytest.mark.django_db
def test_import_bundle_accepts_step_details_of_other_versions() -> None:
    run = make_small_run()
    new = {"mood": "of a later version"}
    facts = {
        "text": "",
        "response_changes": [{"kind": "request", "name": "n", "path": "$", "before": "", "after": "", **new}],
        "findings": [{"code": "c", "message": "A finding without its path."}],
        "parse_errors": [{"mode": "native", "error": "No JSON", "snippet": "{", **new}],
        "schema_errors": [{"path": "$", "kind": "type", "message": "m", **new}],
        "envelope": {"ok": True, "tool_name": "f", **new},
    }
    make_step(run.trials.order_by("pk")[0], bodies={"facts": facts})
    copy = import_bytes(write_bundle_bytes(run)[0])

    step = StepBody.objects.get(step__trial__run=copy, facts=json.dumps(facts).encode()).step
    assert load_wire_steps([step.trial_id])[step.trial_id]
    view = build_step_view(step, "calls", facts=facts, tool_facts=[facts], bodies=(b"", b""))
    assert [problem.path for problem in view.problems] == ["$", "$.content", "$"]


@pytest.mark.django_db
def test_import_bundle_ignores_unknown_columns() -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    run = json.loads(members["evidence/run.json"])
    run["run"]["mood"] = "good"
    copy = import_bytes(reseal_members(members | {"evidence/run.json": json.dumps(run).encode()}))
    assert copy.trials.count() == 2


@pytest.mark.django_db
def test_import_bundle_of_a_running_run_is_cancelled() -> None:
    run = make_small_run(state="running")
    make_trial(run.cells.get(), "queued")
    bundle, manifest = write_bundle_bytes(run)
    assert "1 trials" in {item.what for item in manifest.left_out}
    assert import_bytes(bundle).state == Run.State.CANCELLED


@pytest.mark.django_db
def test_import_bundle_masks_a_key_of_this_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-planted-0123456789abcdef"
    run = make_small_run()
    trial = run.trials.order_by("pk")[0]
    Trial.objects.filter(pk=trial.pk).update(sentence=f"It said {key}.", final_text=key.encode())
    make_step(trial, bodies={"response": key.encode(), "facts": {"text": key}})
    bundle, _ = write_bundle_bytes(run)
    monkeypatch.setenv("PLANTED", key)
    make_provider("Mine", key_source="environment", key_env="PLANTED")
    copy = import_bundle(io.BytesIO(bundle), "bundle.zip", owner=None)
    imported_trial = copy.trials.get(sentence__startswith="It said")
    assert (imported_trial.sentence, bytes(imported_trial.final_text)) == (
        f"It said {'*' * len(key)}.",
        b"*" * len(key),
    )
    body = imported_trial.steps.get(body__response=b"*" * len(key)).body
    assert key not in bytes(body.facts).decode()


def make_rate_limited_run() -> Run:
    """Make a run whose trial has one answer of 429 and a retry after 750 ms."""
    run = make_run()
    trial = make_trial(make_cell(make_config(run)), retries=1)
    make_step(trial, status=429, ok=False, error_code="rate_limited")
    make_step(trial, status=200, attempt=2, backoff_ms=750.0)
    recompute_stale_cells()
    return run


def read_retry_counts(run: Run) -> dict[str, int | float] | None:
    return tally_cells(run.cells.all()).retries_json


@pytest.mark.django_db
def test_import_bundle_without_retry_counts_counts_them_from_steps() -> None:
    run = make_rate_limited_run()
    members = read_members(write_bundle_bytes(run)[0])
    statistics = json.loads(members["statistics.json"])
    for cell in statistics["cells"]:
        assert cell.pop("refused_and_sent_again") == read_retry_counts(run)  # older bundles do not have it
    copy = import_bytes(reseal_members(members | {"statistics.json": json.dumps(statistics).encode()}))
    retry_counts = read_retry_counts(copy)
    assert retry_counts == read_retry_counts(run)
    assert retry_counts is not None
    assert (retry_counts["answers_429"], retry_counts["backoff_ms"]) == (1, 750.0)


@pytest.mark.django_db
def test_import_bundle_without_step_status_has_unknown_retries() -> None:
    members = read_members(write_bundle_bytes(make_rate_limited_run())[0])
    trial = json.loads(members["evidence/trials/000001.json"])
    for step_json in trial["steps"]:
        step_json["step"].pop("status")
    copy = import_bytes(reseal_members(members | {"evidence/trials/000001.json": json.dumps(trial).encode()}))
    assert read_retry_counts(copy) is None
