"""Scenarios, profiles and presets through the API."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.api.requests import ApiClient
from tests.deleted_rows import delete_before_lock
from tests.factories import make_config, make_run
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.errors import NOT_FOUND
from toolbench.lab.models import AuditEntry, SamplingProfile

pytestmark = pytest.mark.django_db


def test_scenarios_api_lists_scenarios_and_draws_instance(api: ApiClient) -> None:
    slugs = {row["slug"] for row in api.get("/scenarios")}
    assert "happy_path" in slugs
    found = api.get("/scenarios/happy_path?seed=7")
    assert found["seed"] == 7
    assert found["tools"]
    assert api.problem("GET", "/scenarios/nothing", status=404)
    assert "seed" in api.problem("GET", "/scenarios/happy_path?seed=-1", status=422)["detail"]
    assert api.get("/scenarios/happy_path?seed=2147483647")["seed"] == 2_147_483_647
    assert "no version 99" in api.problem("GET", "/scenarios/happy_path?version=99", status=404)["detail"]


@pytest.mark.parametrize(
    ("kind", "content", "changed"),
    [
        ("profiles", {"options": {"temperature": 0.5}}, {"options": {"temperature": 0.1}, "tags": ["cold"]}),
        ("presets", {"patch": {"max_turns": 6}}, {"patch": {"max_turns": 8}, "description": "Longer."}),
    ],
)
def test_library_api_saves_changes_and_deletes_entry(
    api: ApiClient, kind: str, content: dict[str, object], changed: dict[str, object]
) -> None:
    made = api.post(f"/{kind}", {"name": "mine", **content}, status=201)
    assert made["version"] == 1
    assert api.problem("POST", f"/{kind}", {"name": "mine", **content}, status=422)["errors"][0]["field"] == "name"
    assert api.send("PUT", f"/{kind}/mine", changed | {"version": 1}).status_code == 200
    found = api.get(f"/{kind}/mine")
    assert found["version"] == 2
    assert {name: found[name] for name in changed} == changed
    stale = api.problem("PUT", f"/{kind}/mine", changed | {"version": 1}, status=422)
    assert "saved version 2 meanwhile" in stale["detail"]
    assert "mine" in {row["name"] for row in api.get(f"/{kind}")}
    assert api.send("DELETE", f"/{kind}/mine").status_code == 200
    assert api.problem("GET", f"/{kind}/mine", status=404)
    assert AuditEntry.objects.count() == 3


def test_library_api_answers_404_for_entry_deleted_meanwhile(api: ApiClient) -> None:
    api.post("/profiles", {"name": "mine", "options": {}}, status=201)
    with delete_before_lock(SamplingProfile.objects.get()):
        problem = api.problem("PUT", "/profiles/mine", {"version": 1, "options": {"seed": 1}}, status=404)
    assert problem["detail"] == NOT_FOUND


@pytest.mark.parametrize("kind", ["profiles", "presets"])
def test_library_api_list_needs_8_queries_at_most(
    api: ApiClient, kind: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    load_builtin_data()
    with django_assert_max_num_queries(8):
        assert len(api.get(f"/{kind}")) > 8


def test_profiles_api_archives_used_profile(api: ApiClient) -> None:
    api.post("/profiles", {"name": "mine", "options": {}}, status=201)
    make_config(make_run(), profile="mine")
    assert "archived" in api._expect(api.send("DELETE", "/profiles/mine"), 200)["sentence"]
    assert SamplingProfile.objects.get(name="mine").archived_at is not None


def test_presets_api_names_unknown_setting(api: ApiClient) -> None:
    problem = api.problem("POST", "/presets", {"name": "mine", "patch": {"max_turn": 6}}, status=422)
    assert "max_turn" in problem["detail"]
