"""Page of drafts from recorded traffic: import, review and bad input."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.lab.interchange.traffic.records import build_logged
from tests.lab.interchange.traffic.test_drafts import render_lines
from tests.page_html import read_html
from toolbench.lab.cases.edit import DRAFT_SET_NAME
from toolbench.lab.models import AuditEntry, Case, TrafficDraft

pytestmark = pytest.mark.django_db


def upload(client: Client, data: bytes, name: str = "log.jsonl") -> str:
    return read_html(client.post("/cases/drafts/import/", {"file": SimpleUploadedFile(name, data)}))


def test_drafts_page_imports_file_and_accepts_draft_as_case(owner_client: Client) -> None:
    page = upload(owner_client, render_lines(build_logged(), build_logged(), build_logged("Rome?"), 7))
    assert "Records read: 4; drafts added: 2; records skipped: 1." in page
    assert "the record is not a JSON object (line 4)" in page
    draft = TrafficDraft.objects.get(count=2)
    answer = owner_client.post("/cases/drafts/review/", {"draft": [draft.pk], "decision": "accept"}, follow=True)
    assert "1 test case created." in read_html(answer)
    assert Case.objects.get().title in read_html(owner_client.get("/cases/drafts/?state=accepted"))
    owner_client.post("/cases/drafts/review/", {"all": "1", "decision": "reject"})
    assert set(TrafficDraft.objects.values_list("state", flat=True)) == {"accepted", "rejected"}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The submitted file is empty"),
        (b"\x00\xff", "drafts added: 0"),
        (b"[" * 100_000, "drafts added: 0"),
        (b"no json", "drafts added: 0"),
    ],
)
def test_drafts_page_adds_nothing_from_unreadable_file(owner_client: Client, data: bytes, sentence: str) -> None:
    assert sentence in upload(owner_client, data)
    assert not TrafficDraft.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"decision": "accept"},
        {"decision": "x", "draft": "1"},
        {"decision": "reject", "draft": "x"},
        {"decision": "accept", "all": "1", "set": DRAFT_SET_NAME},
    ],
)
def test_drafts_page_invalid_review_changes_nothing(owner_client: Client, fields: dict[str, str]) -> None:
    upload(owner_client, render_lines(build_logged()))
    answer = owner_client.post("/cases/drafts/review/", fields, follow=True)
    page = read_html(answer)
    assert "Nothing was changed" in page
    assert [message.level_tag for message in answer.context["messages"]] == ["error"]
    assert not AuditEntry.objects.filter(action="changed").exists()
    assert TrafficDraft.objects.get().state == "open"


def test_drafts_page_refused_review_keeps_set_and_choice(owner_client: Client) -> None:
    upload(owner_client, render_lines(build_logged(), build_logged("Rome?")))
    chosen, other = TrafficDraft.objects.values_list("pk", flat=True)
    fields = {"decision": "accept", "draft": [chosen], "set": "s" * 81, "page": "1"}
    page = read_html(owner_client.post("/cases/drafts/review/", fields, follow=True))
    assert f'value="{"s" * 81}"' in page
    checked = re.findall(r'name="draft"\s+value="(\d+)"[^>]*checked', page)
    assert checked == [str(chosen)]
    assert f'value="{other}"' in page


def test_drafts_page_shows_message_with_lone_surrogate(owner_client: Client) -> None:
    page = upload(owner_client, render_lines(build_logged("great \ud83d")))
    assert r"great \ud83d" in page
    assert r"great \ud83d" in read_html(owner_client.get("/cases/drafts/"))


def test_drafts_page_answers_page_out_of_range_and_unknown_state(owner_client: Client) -> None:
    for query in ("?page=0", "?page=999", "?page=x", "?state=none"):
        assert owner_client.get(f"/cases/drafts/{query}").status_code == 200
