"""Drafts of test cases from recorded traffic through the API."""

import json

import pytest

from tests.api.requests import ApiClient
from toolbench.lab.cases.edit import DRAFT_SET_NAME
from toolbench.lab.models import Case, TrafficDraft

pytestmark = pytest.mark.django_db


def write_line(message: str) -> str:
    tool = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object"}}}
    request = {"model": "m", "messages": [{"role": "user", "content": message}], "tools": [tool]}
    reply = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
    return json.dumps({"request": request, "response": reply})


def test_traffic_api_imports_and_reviews_drafts(api: ApiClient) -> None:
    text = "\n".join([write_line("One."), write_line("One."), write_line("Two."), write_line("Three."), "no JSON"])
    sentence = api.post("/cases/drafts/import", {"text": text})["sentence"]
    assert "drafts added: 3" in sentence
    assert "Skipped 1:" in sentence
    page = api.get("/cases/drafts")
    assert (page["page"], page["pages"], page["counts"]) == (1, 1, {"open": 3})
    first = page["items"][0]
    assert (first["message"], first["count"], first["calls"]) == ("One.", 2, [])
    ids = [row["id"] for row in page["items"]]
    rejected = api.post("/cases/drafts/review", {"action": "reject", "ids": ids[:1]})
    assert rejected["sentence"] == "Drafts rejected: 1."
    accepted = api.post("/cases/drafts/review", {"action": "accept", "ids": None, "set": "Recorded"})
    assert accepted["sentence"] == "Drafts accepted: 2."
    assert set(Case.objects.values_list("set__name", flat=True)) == {"Recorded"}
    assert [row["id"] for row in api.get("/cases/drafts?state=rejected")["items"]] == ids[:1]
    assert "drafts added: 0" in api.post("/cases/drafts/import", {"text": text})["sentence"]
    assert TrafficDraft.objects.count() == 3


def test_traffic_api_refuses_set_of_playground(api: ApiClient) -> None:
    api.post("/cases/drafts/import", {"text": write_line("One.")})
    body = {"action": "accept", "ids": None, "set": DRAFT_SET_NAME}
    assert api.problem("POST", "/cases/drafts/review", body, status=422)["errors"][0]["field"] == "set"
    assert TrafficDraft.objects.get().state == "open"


def test_traffic_api_refuses_review_without_ids_and_unknown_state(api: ApiClient) -> None:
    assert api.problem("POST", "/cases/drafts/review", {"action": "accept"}, status=422)
    assert api.problem("POST", "/cases/drafts/review", {"action": "accept", "ids": []}, status=422)
    assert api.problem("GET", "/cases/drafts?state=lost", status=422)
