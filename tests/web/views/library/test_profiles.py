"""Sampling profiles: creation, copies, versions, comparison, deletion and use in runs."""

import json
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_config, make_model, make_run
from tests.lab.scripted_runs import run_worker_session
from tests.lab.simulated_runs import get_simulated_model, serve_simulated_models
from tests.page_html import read_html
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.models import AuditEntry, LibraryVersion, Run, SamplingProfile, StepBody

pytestmark = pytest.mark.django_db

COOL: dict[str, Any] = {"name": "cool", "temperature": "0.2", "applies_to": "*"}


def read_form_values(client: Client, path: str) -> dict[str, Any]:
    """Return the values of the form on a page, as a browser would send them."""
    form = client.get(path).context["form"]
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def get_launch_page(client: Client) -> str:
    return read_html(client.get("/runs/new/"))


@pytest.mark.django_db(transaction=True)
def test_profile_is_sent_in_run_and_later_edit_leaves_run(owner_client: Client) -> None:
    with serve_simulated_models():
        owner_client.post("/profiles/new/", COOL)
        model = get_simulated_model("perfect")
        fields = read_form_values(owner_client, "/runs/new/") | {"methods": ["native"], "probe_unknown": ""}
        chosen = {"models": [model.pk], "profiles": ["cool"], "scenarios": ["happy_path"], "trials": "1"}
        response = owner_client.post("/runs/new/", fields | chosen)
        assert response.status_code == 302, response.context["form"].errors
        run_worker_session(model)
    run = Run.objects.get()
    bodies = [json.loads(bytes(body)) for body in StepBody.objects.values_list("request", flat=True) if body]
    assert {body["temperature"] for body in bodies if "messages" in body} == {0.2}

    owner_client.post("/profiles/cool/", read_form_values(owner_client, "/profiles/cool/") | {"temperature": "0.9"})
    assert SamplingProfile.objects.get(name="cool").options == {"temperature": 0.9}
    assert run.configs.get().options == {"temperature": 0.2}
    page = read_html(owner_client.get("/profiles/cool/"))
    assert "1 run" in page
    owner_client.post("/profiles/cool/delete/")
    assert SamplingProfile.objects.get(name="cool").archived_at is not None
    assert 'value="cool"' not in get_launch_page(owner_client)


def test_profile_form_creates_profile_with_first_version(owner_client: Client) -> None:
    typed = COOL | {"top_k": "20", "parallel_tool_calls": "false", "more": '{"stop": ["END"]}', "tags": "a, b"}
    assert owner_client.post("/profiles/new/", typed).headers["Location"] == "/profiles/cool/"
    profile = SamplingProfile.objects.get()
    options = {"temperature": 0.2, "top_k": 20, "parallel_tool_calls": False, "stop": ["END"]}
    assert (profile.options, profile.tags, profile.builtin) == (options, ["a", "b"], False)
    version = LibraryVersion.objects.get()
    assert (version.number, version.username, version.content["options"]) == (1, "owner", options)
    assert AuditEntry.objects.get().subject == "sampling profile cool"
    make_model()
    assert 'value="cool"' in get_launch_page(owner_client)


def test_profile_page_says_that_no_model_matches(owner_client: Client) -> None:
    make_model("vendor/one")
    narrow = read_html(owner_client.post("/profiles/new/", COOL | {"applies_to": "glm-*"}, follow=True))
    assert "No connected model matches glm-*" in narrow
    wide = read_html(owner_client.post("/profiles/new/", COOL | {"name": "wide"}, follow=True))
    assert "Applies to 1 model name, counted over all providers" in wide
    assert "No connected model matches" not in wide


def test_profile_page_of_built_in_profile_without_options(owner_client: Client) -> None:
    SamplingProfile.objects.create(name="plain", builtin=True)
    text = read_html(owner_client.get("/profiles/plain/"))
    assert "Nothing: the provider's defaults apply." in text
    assert "built in" in text.split("Versions</h2>")[1]


def test_profile_form_edit_adds_version_with_difference(owner_client: Client) -> None:
    owner_client.post("/profiles/new/", COOL | {"top_p": "1"})
    owner_client.post("/profiles/cool/", read_form_values(owner_client, "/profiles/cool/") | {"temperature": "0.4"})
    owner_client.post("/profiles/cool/", read_form_values(owner_client, "/profiles/cool/"))  # nothing changed
    page = owner_client.get("/profiles/cool/").context["page"]
    assert [version.number for version in page.versions] == [2, 1]
    (setting,) = page.difference.settings
    assert (setting.name, setting.old, setting.new) == ("temperature", "0.2", "0.4")
    text = read_html(owner_client.get("/profiles/cool/?old=2&new=2"))
    assert "No setting differs." in text
    assert "Save version 3" in text


def test_profile_form_refuses_edit_of_older_version_and_keeps_input(owner_client: Client) -> None:
    owner_client.post("/profiles/new/", COOL)
    read_first = read_form_values(owner_client, "/profiles/cool/")
    owner_client.post("/profiles/cool/", read_first | {"temperature": "0.4"})
    response = owner_client.post("/profiles/cool/", read_first | {"temperature": "0.6"})
    assert response.status_code == 422
    assert "owner saved version 2 meanwhile" in read_html(response)
    assert response.context["form"]["temperature"].value() == "0.6"
    assert SamplingProfile.objects.get().options == {"temperature": 0.4}
    form = response.context["form"]
    again = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert owner_client.post("/profiles/cool/", again).status_code == 302
    assert SamplingProfile.objects.get().options == {"temperature": 0.6}
    assert owner_client.get("/profiles/cool/").context["page"].versions[0].number == 3


def test_profile_form_copies_builtin_profile_and_never_changes_it(owner_client: Client) -> None:
    load_builtin_data()
    name = "qwen_recommended"
    builtin = SamplingProfile.objects.get(name=name)
    assert "Save version" not in read_html(owner_client.get(f"/profiles/{name}/"))
    assert owner_client.post(f"/profiles/{name}/", {"applies_to": "*", "read_number": "1"}).status_code == 422
    assert owner_client.post(f"/profiles/{name}/delete/").status_code == 404
    owner_client.post("/profiles/new/", read_form_values(owner_client, f"/profiles/new/?copy={name}"))
    copy = SamplingProfile.objects.get(name=f"{name}_copy")
    assert (copy.options, copy.applies_to, copy.tags) == (builtin.options, builtin.applies_to, builtin.tags)
    builtin.refresh_from_db()
    assert builtin.options == copy.options


def test_profile_delete_removes_unused_profile_with_versions(owner_client: Client) -> None:
    owner_client.post("/profiles/new/", COOL)
    assert "Delete cool?" in read_html(owner_client.get("/profiles/cool/delete/"))
    owner_client.post("/profiles/cool/delete/")
    assert not SamplingProfile.objects.exists()
    assert not LibraryVersion.objects.exists()
    assert owner_client.get("/profiles/cool/").status_code == 404


def test_profile_archived_stays_readable_and_keeps_name(owner_client: Client) -> None:
    owner_client.post("/profiles/new/", COOL)
    make_config(make_run(), profile="cool", options={"temperature": 0.2})
    owner_client.post("/profiles/cool/delete/")
    assert "archived" in read_html(owner_client.get("/profiles/"))
    assert "Archived: runs" in read_html(owner_client.get("/profiles/cool/"))
    response = owner_client.post("/profiles/new/", COOL)
    assert set(response.context["form"].errors) == {"name"}


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"name": "new"}, "name"),
        ({"name": "a b"}, "name"),
        ({"temperature": "nan"}, "temperature"),
        ({"temperature": "9"}, "temperature"),
        ({"top_k": "1" * 5000}, "top_k"),
        ({"parallel_tool_calls": "perhaps"}, "parallel_tool_calls"),
        ({"more": "[1]"}, "more"),
        ({"more": "{"}, "more"),
        ({"more": '{"temperature": 1}'}, "more"),
        ({"more": '{"model": "x"}'}, "more"),
        ({"more": '{"stop": "\\u0000"}'}, "more"),
        ({"more": '{"stop": "\\ud800"}'}, "more"),
        ({"more": '{"x": 1e999}'}, "more"),
        ({"more": '{"x": ' + "[" * 5000 + "]" * 5000 + "}"}, "more"),
        ({"applies_to": ""}, "applies_to"),
    ],
)
def test_profile_form_names_wrong_field_and_saves_nothing(
    owner_client: Client, typed: dict[str, str], field: str
) -> None:
    response = owner_client.post("/profiles/new/", COOL | typed)
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {field}
    assert not SamplingProfile.objects.exists()


@pytest.mark.parametrize("name", ["nobody", "%00a", "%27"])
def test_profile_form_copy_of_unknown_profile_is_404(owner_client: Client, name: str) -> None:
    assert owner_client.get(f"/profiles/new/?copy={name}").status_code == 404
