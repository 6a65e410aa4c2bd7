"""Test cases through the API."""

import json
from typing import Any

import pytest

from tests.api.requests import ApiClient
from tests.deleted_rows import delete_before_lock
from tests.factories import make_model
from toolbench.api.documents.cases import CaseBody
from toolbench.lab.cases.edit import DRAFT_SET_NAME
from toolbench.lab.errors import NOT_FOUND
from toolbench.lab.models import Case

pytestmark = pytest.mark.django_db
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CASE: dict[str, Any] = {
    "title": "Weather",
    "tools": [TOOL],
    "message": "How is the weather in Oslo?",
    "expect": {"name": "get_weather", "arguments": {"city": "Oslo"}},
}


def test_cases_api_creates_reads_changes_and_deletes_case(api: ApiClient) -> None:
    made = api.post("/cases", CASE, status=201)
    assert made == {"slug": "own-weather", "title": "Weather", "set": "My cases", "version": 1}
    found = api.get("/cases/own-weather")
    assert found["editable"]
    assert found["expect"]
    answer = api.send("PUT", "/cases/own-weather", CASE | {"message": "Weather in Oslo, please."})
    assert json.loads(answer.content)["version"] == 2
    assert api.get("/cases")[0]["cases"][0]["slug"] == "own-weather"
    assert api.send("DELETE", "/cases/own-weather").status_code == 204
    assert api.problem("GET", "/cases/own-weather", status=404)
    assert api.problem("DELETE", "/cases/own-weather", status=404)


def test_cases_api_answers_404_for_case_deleted_meanwhile(api: ApiClient) -> None:
    slug = api.post("/cases", CASE, status=201)["slug"]
    with delete_before_lock(Case.objects.get()):
        assert api.problem("PUT", f"/cases/{slug}", CASE | {"title": "New"}, status=404)["detail"] == NOT_FOUND


@pytest.mark.parametrize("message", ['[{"city": "Oslo"}] Sort this.', '[{"role": "user", "content": "Oslo"}]'])
def test_cases_api_keeps_message_that_looks_like_list(api: ApiClient, message: str) -> None:
    api.post("/cases", CASE | {"message": message}, status=201)
    assert api.get("/cases/own-weather")["messages"] == [{"role": "user", "content": message}]


def test_cases_api_round_trip_keeps_every_field(api: ApiClient) -> None:
    api.post(
        "/cases", CASE | {"group": "weather", "behaviour": "parallel_turn", "further": ["And in Bergen?"]}, status=201
    )
    found = api.get("/cases/own-weather")
    assert (found["group"], found["behaviour"], found["control"]) == ("weather", "parallel_turn", False)
    assert found["further"] == ["And in Bergen?"]
    sent = {name: found[name] for name in CaseBody.model_fields}
    assert json.loads(api.send("PUT", "/cases/own-weather", sent).content)["version"] == 1


@pytest.mark.parametrize(("text", "further"), [('And in "Århus"?', ['And in "Århus"?']), ("", None)])
def test_cases_api_keeps_single_follow_up_as_sent(api: ApiClient, text: str, further: list[str] | None) -> None:
    slug = api.post("/cases", CASE | {"further": text}, status=201)["slug"]
    assert api.get(f"/cases/{slug}")["further"] == further


def test_cases_api_refuses_message_together_with_messages(api: ApiClient) -> None:
    messages = [{"role": "user", "content": "Oslo?"}]
    assert "not both" in api.problem("POST", "/cases", CASE | {"messages": messages}, status=422)["detail"]
    assert api.problem("POST", "/cases", CASE | {"message": "", "messages": []}, status=422)
    made = api.post("/cases", CASE | {"message": "", "messages": [*messages, *messages]}, status=201)
    found = api.get(f"/cases/{made['slug']}")
    assert (found["message"], found["messages"]) == ("", [*messages, *messages])


def test_cases_api_names_field_of_unjudgeable_case(api: ApiClient) -> None:
    problem = api.problem("POST", "/cases", CASE | {"expect": {"name": "get_time"}}, status=422)
    assert problem["errors"][0]["field"] == "expect"
    assert not Case.objects.exists()


def test_cases_api_exports_and_imports_cases(api: ApiClient) -> None:
    api.post("/cases", CASE, status=201)
    text = api.send("GET", "/cases/export?private=true").content.decode()
    assert "Oslo" in text
    assert api.send("GET", "/cases/export").content == b""
    assert "unchanged" in api.post("/cases/import", {"text": text})["sentence"]
    assert "Nothing was imported" in api.problem("POST", "/cases/import", {"text": "[1]"}, status=422)["detail"]


def test_cases_api_changes_privacy_of_set(api: ApiClient) -> None:
    api.post("/cases", CASE, status=201)
    set_id = api.get("/cases")[0]["id"]
    assert api.send("PATCH", f"/cases/sets/{set_id}", {"public": True}).status_code == 200
    assert api.get("/cases")[0]["public"]
    assert api.problem("PATCH", "/cases/sets/999999", {"public": True}, status=404)


def test_cases_api_refuses_set_of_playground_and_keeps_its_conversations(api: ApiClient) -> None:
    line = json.dumps({"tools": [TOOL], "messages": "Oslo?", "expect": {"name": "get_weather"}})
    for path, body in (("/cases", CASE), ("/cases/import", {"text": line})):
        problem = api.problem("POST", path, body | {"set": DRAFT_SET_NAME}, status=422)
        assert [error["field"] for error in problem["errors"]] == ["set"]
    assert not Case.objects.exists()
    sent = api.post("/conversations", {"message": "Hello.", "model": make_model().pk}, status=201)
    assert api.get(f"/conversations/{sent['conversation']}")["messages"] == 1
