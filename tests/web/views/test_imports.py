"""A file sent to be imported becomes a run in its own scope, or a message that says why not."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.lab.bundles.bundles import zipped
from tests.lab.bundles.test_reading import small_run
from toolbench.lab.models import Run
from toolbench.web.forms import imports

pytestmark = pytest.mark.django_db


def downloaded(client: Client, run: Run) -> bytes:
    response = client.get(f"/runs/{run.pk}/bundle.zip")
    assert response.headers["content-disposition"].endswith(f'filename="toolbench-bundle-{run.pk}.zip"')
    return bytes(response.getvalue())


def sent(client: Client, content: bytes, name: str = "bundle.zip") -> str:
    """The page that is shown then."""
    response = client.post("/imported/new/", {"file": SimpleUploadedFile(name, content)}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_a_bundle_from_the_run_page_is_imported_and_labelled(owner_client: Client) -> None:
    run = small_run(simulated=True)
    assert f"/runs/{run.pk}/bundle.zip" in owner_client.get(f"/runs/{run.pk}/").content.decode()
    text = sent(owner_client, downloaded(owner_client, run))
    copy = Run.objects.get(imported=True)
    assert f"Run {copy.pk} is imported with 2 trials." in text
    assert "<b>Imported.</b>" in text
    assert "<b>Simulated.</b>" in text
    listed = owner_client.get("/imported/").content.decode()
    assert f"/runs/{copy.pk}/" in listed
    for own in ("/runs/", "/demo/"):
        assert f'"/runs/{copy.pk}/"' not in owner_client.get(own).content.decode()


@pytest.mark.parametrize("content", [b"garbage", b"", zipped({"a": b"b"})])
def test_garbage_is_refused_with_a_message(owner_client: Client, content: bytes) -> None:
    assert "Nothing was imported" in sent(owner_client, content)
    assert not Run.objects.exists()


def test_too_much_is_refused_and_the_way_out_is_named(owner_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MOST_BYTES", 10)
    text = sent(owner_client, b"more than ten bytes")
    assert "19 bytes; 10 are taken here" in text
    assert "manage.py import_bundle FILE" in text


def test_there_is_no_bundle_of_a_run_that_is_not_there(owner_client: Client) -> None:
    assert owner_client.get("/runs/7/bundle.zip").status_code == 404


def test_a_run_that_can_only_be_private_says_so_instead_of_a_download(owner_client: Client) -> None:
    run = small_run()
    run.cells.update(scenario="a_case_of_my_own")
    text = owner_client.get(f"/runs/{run.pk}/bundle.zip", follow=True).content.decode()
    assert f"All cases of run {run.pk} are private" in text


def test_private_cases_leave_only_with_a_tick_and_nothing_of_an_imported_run_is_offered_to_be_sent(
    owner_client: Client,
) -> None:
    run = small_run()
    run.cells.update(scenario="a_case_of_my_own")
    page = owner_client.get(f"/runs/{run.pk}/").content.decode()
    assert "1 private case may travel with it" in page
    assert 'value="repeat"' in page
    response = owner_client.get(f"/runs/{run.pk}/bundle.zip?private=1")
    sent(owner_client, response.getvalue())
    there = owner_client.get(f"/runs/{Run.objects.get(imported=True).pk}/").content.decode()
    assert "1 private case may travel with it" in there
    assert 'value="repeat"' not in there
