"""The page of drafts from traffic: a file in, drafts accepted and rejected, bad input named."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.lab.interchange.traffic.records import build_logged
from tests.lab.interchange.traffic.test_drafts import render_lines
from tests.page_html import read_html
from toolbench.lab.models import Case, TrafficDraft

pytestmark = pytest.mark.django_db


def send(client: Client, data: bytes, name: str = "log.jsonl") -> str:
    return read_html(client.post("/cases/drafts/import/", {"file": SimpleUploadedFile(name, data)}))


def test_a_file_becomes_drafts_and_a_draft_becomes_a_case(owner_client: Client) -> None:
    page = send(owner_client, render_lines(build_logged(), build_logged(), build_logged("Rome?"), 7))
    assert "Records read: 4; drafts added: 2; records skipped: 1." in page
    assert "the record is not a JSON object (line 4)" in page
    draft = TrafficDraft.objects.get(count=2)
    answer = owner_client.post("/cases/drafts/review/", {"draft": [draft.pk], "decision": "accept"}, follow=True)
    assert "1 case created." in read_html(answer)
    assert Case.objects.get().title in read_html(owner_client.get("/cases/drafts/?state=accepted"))
    owner_client.post("/cases/drafts/review/", {"all": "1", "decision": "reject"})
    assert set(TrafficDraft.objects.values_list("state", flat=True)) == {"accepted", "rejected"}


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"[" * 100_000, b"no json"])
def test_a_file_that_cannot_be_read_adds_nothing_and_says_so(owner_client: Client, data: bytes) -> None:
    page = send(owner_client, data)
    assert "drafts added: 0" in page or "The submitted file is empty" in page
    assert not TrafficDraft.objects.exists()


@pytest.mark.parametrize(
    "fields", [{}, {"decision": "accept"}, {"decision": "x", "draft": "1"}, {"decision": "reject", "draft": "x"}]
)
def test_a_review_without_a_choice_changes_nothing(owner_client: Client, fields: dict[str, str]) -> None:
    send(owner_client, render_lines(build_logged()))
    answer = owner_client.post("/cases/drafts/review/", fields, follow=True)
    assert "Nothing was changed" in read_html(answer)
    assert TrafficDraft.objects.get().state == "open"


def test_pages_beyond_the_last_and_unknown_states_are_shown(owner_client: Client) -> None:
    for query in ("?page=0", "?page=999", "?page=x", "?state=none"):
        assert owner_client.get(f"/cases/drafts/{query}").status_code == 200
