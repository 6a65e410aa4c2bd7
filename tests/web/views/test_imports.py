"""Import page and exported bundles: imported runs, refusals and queued imports."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from tests.lab.interchange.bundle.test_read import make_small_run, write_bundle_with_bad_case
from tests.lab.interchange.bundle_bytes import read_members, reseal_members, write_bundle_bytes, zip_members
from tests.page_html import read_html
from tests.web.run_urls import list_failed_urls
from toolbench.lab import builtin_data
from toolbench.lab.interchange.queue import REPLAY_KINDS
from toolbench.lab.models import Replay, Run
from toolbench.lab.replays.queue import run_replay
from toolbench.web.forms import imports

pytestmark = pytest.mark.django_db


def download_bundle(client: Client, run: Run) -> bytes:
    response = client.get(f"/runs/{run.pk}/bundle.zip")
    assert response.headers["content-disposition"].endswith(f'filename="toolbench-bundle-{run.pk}.zip"')
    return bytes(response.getvalue())


def upload_file(client: Client, content: bytes, name: str = "bundle.zip") -> str:
    """Upload a file to import and return the page that follows."""
    response = client.post("/imported/new/", {"file": SimpleUploadedFile(name, content)}, follow=True)
    assert response.status_code == 200
    return read_html(response)


def test_import_page_imports_and_labels_exported_bundle(owner_client: Client) -> None:
    run = make_small_run(simulated=True)
    assert f"/runs/{run.pk}/bundle.zip" in read_html(owner_client.get(f"/runs/{run.pk}/"))
    text = upload_file(owner_client, download_bundle(owner_client, run))
    copy = Run.objects.get(imported=True)
    assert f"Run {copy.pk} is imported with 2 trials." in text
    assert "<b>Imported.</b>" in text
    assert "<b>Simulated.</b>" in text
    listed = read_html(owner_client.get("/imported/"))
    own_row = listed.partition(f'"/runs/{copy.pk}/"')[2].partition("</tr>")[0]
    assert ">simulated<" in own_row
    for path in ("/runs/", "/demo/"):
        assert f'"/runs/{copy.pk}/"' not in read_html(owner_client.get(path))


NOT_UTF8 = zip_members({"abcdé": b"x"}).replace("é".encode(), b"\xff\xfe")


@pytest.mark.parametrize("content", [b"garbage", b"", zip_members({"a": b"b"}), NOT_UTF8])
def test_import_page_refuses_garbage(owner_client: Client, content: bytes) -> None:
    assert "Nothing was imported" in upload_file(owner_client, content)
    assert not Run.objects.exists()


def test_import_page_refuses_too_large_file_and_names_command(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_FILE_BYTES", 10)
    text = upload_file(owner_client, b"more than ten bytes")
    assert "19 bytes; an upload may have 10" in text
    assert "manage.py import_bundle FILE" in text


def test_bundle_of_unknown_run_is_404(owner_client: Client) -> None:
    assert owner_client.get("/runs/7/bundle.zip").status_code == 404


def test_bundle_of_private_cases_is_refused_with_reason(owner_client: Client) -> None:
    run = make_small_run()
    run.cells.update(scenario="a_case_of_my_own")
    text = read_html(owner_client.get(f"/runs/{run.pk}/bundle.zip", follow=True))
    assert f"All test cases of run {run.pk} are private" in text


def test_bundle_includes_private_cases_only_if_chosen(
    owner_client: Client,
) -> None:
    run = make_small_run()
    run.cells.update(scenario="a_case_of_my_own")
    page = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert "with 1 private test case" in page
    assert f'href="/runs/{run.pk}/repeat/"' in page
    response = owner_client.get(f"/runs/{run.pk}/bundle.zip?private=1")
    upload_file(owner_client, response.getvalue())
    imported_page = read_html(owner_client.get(f"/runs/{Run.objects.get(imported=True).pk}/"))
    assert "with 1 private test case" in imported_page
    assert "/repeat/" not in imported_page


NARROWED = ("/decide/", "/decide/recommendations/", "/compare/", "/matrix/", "/latency/", "/failures/")


@pytest.mark.parametrize("cost", [1.7e308, -1.7e308, 1e6, 0.0])
def test_pages_answer_for_imported_cost(owner_client: Client, cost: float) -> None:
    builtin_data.load_builtin_data()
    run = make_small_run()
    members = read_members(write_bundle_bytes(run)[0])
    for name in [name for name in members if name.startswith("evidence/trials/")]:
        trial = json.loads(members[name])
        trial["trial"]["cost"] = trial["steps"][0]["step"]["cost"] = cost
        members[name] = json.dumps(trial).encode()
    text = upload_file(owner_client, reseal_members(members))
    copy = Run.objects.get(imported=True)
    assert ("Figures outside their bounds count as unknown, and as 0 in totals: cost (4)." in text) is (abs(cost) > 1e6)
    assert set(copy.trials.values_list("cost", flat=True)) == {None if abs(cost) > 1e6 else cost}
    assert list_failed_urls(owner_client, copy, run) == []


def test_pages_answer_for_stored_cost_outside_bounds(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    poisoned, innocent = make_run(imported=True), make_run()
    for run, cost in ((poisoned, 1.7e308), (innocent, 0.25)):
        cell = make_cell(make_config(run))
        for _ in range(2):
            make_trial(cell, cost=cost)
    recompute_stale_cells()
    assert (poisoned.cells.get().cost, innocent.cells.get().cost) == (None, 0.5)
    for page in NARROWED:
        address = f"{page}?run={poisoned.pk}&a_run={poisoned.pk}&b_run={innocent.pk}"
        assert owner_client.get(address).status_code == 200


def test_import_page_queues_small_archive_with_large_content(owner_client: Client) -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    packed = reseal_members(members | {"traces/large.html": b"x" * (3 << 20)})
    assert len(packed) < imports.MAX_IMMEDIATE_BYTES
    response = owner_client.post("/imported/new/", {"file": SimpleUploadedFile("bundle.zip", packed)})
    assert response.headers["location"].startswith("/imported/jobs/")
    assert not Run.objects.filter(imported=True).exists()
    run_replay(Replay.objects.get().pk, REPLAY_KINDS)
    assert Run.objects.get(imported=True).trial_count == 2


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_import_page_shows_refusal_that_quotes_unstorable_text(owner_client: Client, name: str) -> None:
    bundle = write_bundle_with_bad_case(name)
    assert "There is no tool a" in upload_file(owner_client, bundle)
    assert not Run.objects.filter(imported=True).exists()


@pytest.mark.django_db(transaction=True)
def test_import_page_queues_large_file_and_shows_progress(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_IMMEDIATE_BYTES", 10)
    bundle = download_bundle(owner_client, make_small_run())
    response = owner_client.post("/imported/new/", {"file": SimpleUploadedFile("bundle.zip", bundle)})
    address = response.headers["location"]
    text = read_html(owner_client.get("/imported/"))
    assert f'{address}">bundle.zip</a>' in text
    assert "waiting for a worker" in text
    text = read_html(owner_client.get(address))
    assert "waits for a worker" in text
    assert 'http-equiv="refresh"' in text  # without JavaScript the page reloads itself
    part = read_html(owner_client.get(address, headers={"HX-Request": "true"}))
    assert "hx-get" in part
    assert "Breadcrumb" not in part

    run_replay(Replay.objects.get().pk, REPLAY_KINDS)

    part = read_html(owner_client.get(address, headers={"HX-Request": "true"}))
    assert "is imported with 2 trials." in part
    assert "hx-get" not in part
    assert owner_client.get("/imported/jobs/4711/").status_code == 404
    assert address not in read_html(owner_client.get("/imported/"))


def test_import_page_lists_refused_import_with_reason(owner_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MAX_IMMEDIATE_BYTES", 2)
    address = owner_client.post("/imported/new/", {"file": SimpleUploadedFile("a.zip", b"garbage")}).headers["location"]
    run_replay(Replay.objects.get().pk, REPLAY_KINDS)
    text = read_html(owner_client.get("/imported/"))
    assert f'{address}">a.zip</a>' in text
    assert "The file is not a complete zip archive" in text
