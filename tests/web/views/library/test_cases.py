"""Pages of test cases: forms, sets, copies of scenarios, and runs of a set."""

import html
import json
import re

import pytest
from django.test import Client

from tests.deleted_rows import delete_before_lock
from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.edit import DRAFT_SET_NAME
from toolbench.lab.cases.pages import get_model_choices
from toolbench.lab.models import Case, CaseSet, Provider, Run, SamplingProfile, ServiceAddress

pytestmark = pytest.mark.django_db
CASE = {"tools": '[{"name": "f"}]', "message": "Hi", "expect": '{"no_call": true}'}


def test_cases_page_without_test_case_has_one_primary_button(owner_client: Client) -> None:
    text = read_html(owner_client.get("/cases/")).partition("<main")[2]
    assert text.count("btn primary") == text.count("New test case") == 1
    assert "No test case yet" in text


def test_cases_page_plans_whole_set_and_confirms_paid_requests(owner_client: Client) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    import_bfcl(["multi_turn_base"], limit=3)
    model = make_model()
    found = re.search(r'href="(/runs/new/\?scenarios=[^"]+)"', read_html(owner_client.get("/cases/")))
    assert found is not None
    form = owner_client.get(html.unescape(found[1])).context["form"]
    filled = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    plan = filled | {"models": [model.pk]}

    forecast = owner_client.get("/runs/new/", plan, headers={"HX-Request": "true"})
    assert "Start 30 trials" in read_html(forecast)
    refused = owner_client.post("/runs/new/", plan)
    assert "may cost money" in read_html(refused)
    assert not Run.objects.exists()
    owner_client.post("/runs/new/", plan | {"agreed": str(refused.context["plan"].max_paid_requests)})
    assert Run.objects.get().trials.count() == 30


def test_case_form_keeps_line_feeds_of_sent_texts(owner_client: Client) -> None:
    """Browsers send each line feed as carriage return and line feed; models would get another request."""
    owner_client.post(
        "/cases/new/", CASE | {"system": "One\r\n\r\ntwo\rthree\nfour", "message": "Hi\r\nthere", "save": "1"}
    )
    messages = json.loads(Case.objects.get().versions.get().definition)["messages"]
    assert [message["content"] for message in messages] == ["One\n\ntwo\nthree\nfour", "Hi\nthere"]


def test_case_form_of_case_deleted_meanwhile_is_404(owner_client: Client) -> None:
    owner_client.post("/cases/new/", CASE)
    case = Case.objects.get()
    with delete_before_lock(case):
        assert owner_client.post(f"/cases/{case.slug}/edit/", CASE | {"title": "New"}).status_code == 404


def test_case_form_shows_all_errors_and_keeps_input(owner_client: Client) -> None:
    typed = {"tools": "[oops", "message": "Hi", "expect": "name: {", "turns": "many"}
    response = owner_client.post("/cases/new/", typed)
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {"tools", "expect", "turns"}
    assert response.context["form"]["turns"].value() == "many"
    blank = owner_client.post("/cases/new/", {"expect": '{"name": "f"}', "turns": "0"})
    assert {name: len(errors) for name, errors in blank.context["form"].errors.items()} == {
        "tools": 1, "message": 1, "turns": 1,
    }  # fmt: skip


def test_case_forms_explain_set_that_is_not_for_user_cases(owner_client: Client) -> None:
    case = {"tools": '[{"name": "f"}]', "message": "Hi", "expect": '{"name": "f"}', "set": DRAFT_SET_NAME}
    line = '{"tools": {"name": "f"}, "messages": "Hi", "expect": {"name": "f"}}'
    for path, typed in (("/cases/new/", case), ("/cases/bring/", {"text": line, "set": DRAFT_SET_NAME})):
        response = owner_client.post(path, typed)
        assert (response.status_code, set(response.context["form"].errors)) == (422, {"set"})
    assert not Case.objects.exists()


LONE_SURROGATE = r'"\ud800"'


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/cases/new/", {"tools": f'[{{"name": {LONE_SURROGATE}}}]', "message": "Hi", "expect": '{"name": "f"}'}),
        ("/cases/new/", {"tools": '[{"name": "f"}]', "message": "Hi", "expect": f'{{"name": {LONE_SURROGATE}}}'}),
        ("/cases/new/", {"tools": f'[{{"name": "f", {LONE_SURROGATE}: 1, {LONE_SURROGATE}: 2}}]', "message": "Hi"}),
        (
            "/cases/bring/",
            {"text": f'{{"tools": {{"name": "f"}}, "messages": "Hi", "expect": {{"name": {LONE_SURROGATE}}}}}'},
        ),
        ("/cases/bring/", {"text": f"{{{LONE_SURROGATE}: 1, {LONE_SURROGATE}: 2}}"}),
        ("/cases/bring/", {"text": f"{{{LONE_SURROGATE}: 1}}"}),
    ],
)
def test_case_forms_show_errors_that_quote_lone_surrogate(
    owner_client: Client, path: str, typed: dict[str, str]
) -> None:
    response = owner_client.post(path, typed)
    assert response.status_code == 422
    assert "?" in str(response.context["form"].errors)


@pytest.mark.parametrize(
    "message",
    [
        f'[{{"role": "user", "content": {LONE_SURROGATE}}}]',
        f'[{{"role": "system", "content": {LONE_SURROGATE}}}, {{"role": "user", "content": "Hi"}}]',
    ],
)
def test_case_with_lone_surrogate_is_shown_and_kept_by_form(owner_client: Client, message: str) -> None:
    owner_client.post("/cases/new/", CASE | {"message": message, "save": "1"})
    case = Case.objects.get()
    definition = case.versions.get().definition
    for path in ("/cases/", f"/cases/{case.slug}/", f"/scenarios/{case.slug}/", f"/playground/?case={case.slug}"):
        assert owner_client.get(path).status_code == 200, path
    form = owner_client.get(f"/cases/{case.slug}/edit/").context["form"]
    sent = {name: form[name].value() or "" for name in form.fields} | {"parallel": "on"}
    assert owner_client.post(f"/cases/{case.slug}/edit/", sent).status_code == 302
    newest = case.versions.get(number=2)
    assert json.loads(newest.definition)["messages"] == json.loads(definition)["messages"]


def test_case_form_refuses_edit_of_older_version_until_sent_again(owner_client: Client) -> None:
    owner_client.post("/cases/new/", CASE | {"save": "1"})
    path = f"/cases/{Case.objects.get().slug}/edit/"
    sent = CASE | {"read_number": str(owner_client.get(path).context["form"]["read_number"].value())}
    changed = sent | {"message": "Hello"}
    for _ in range(2):  # the same content again is no conflict
        assert owner_client.post(path, changed).status_code == 302
    refused = owner_client.post(path, sent | {"message": "Good morning"})
    assert refused.status_code == 422
    assert "Version 2 was saved meanwhile." in read_html(refused)
    assert "Show version 2</a>" in read_html(refused)
    assert "Correct the marked fields" not in read_html(refused)
    form = refused.context["form"]
    assert form["message"].value() == "Good morning"
    assert Case.objects.get().current == 2
    assert owner_client.post(path, {name: form[name].value() or "" for name in form.fields}).status_code == 302
    assert Case.objects.get().current == 3


def test_case_form_of_unknown_trial_saves_case_without_it(owner_client: Client) -> None:
    response = owner_client.post("/cases/new/?trial=999999999", CASE | {"save": "1"})
    assert response.headers["Location"] == f"/cases/{Case.objects.get().slug}/"
    assert Case.objects.get().from_trial is None


def test_case_form_with_invalid_run_saves_no_case(owner_client: Client) -> None:
    response = owner_client.post("/cases/new/", CASE | {"run": "1", "model": make_model().pk, "trials": "0"})
    assert response.status_code == 422
    assert set(response.context["run_form"].errors) == {"trials"}
    assert not Case.objects.exists()


def test_case_set_button_makes_set_private_and_public(owner_client: Client) -> None:
    import_bfcl(["simple_python"], limit=1)
    group = CaseSet.objects.get()

    page = read_html(owner_client.post(f"/cases/sets/{group.pk}/", {"public": "no"}, follow=True))
    assert "BFCL simple_python is private" in page
    assert "Make it public" in page
    owner_client.post(f"/cases/sets/{group.pk}/", {"public": "yes"})
    assert CaseSet.objects.get().public
    assert owner_client.post("/cases/sets/0/").status_code == 404


def test_case_form_example_is_valid_case(owner_client: Client) -> None:
    assert 'href="/cases/new/?example=1"' in read_html(owner_client.get("/cases/new/"))
    begun = owner_client.get("/cases/new/?example=1")
    assert "This is an example" in read_html(begun)
    form = begun.context["form"]
    owner_client.post("/cases/new/?example=1", {name: form[name].value() or "" for name in form.fields} | {"save": "1"})
    case = Case.objects.get()
    assert case.title.startswith("schedule_delivery")
    scenario_page = read_html(owner_client.get(f"/scenarios/{case.slug}/"))
    assert f'href="/cases/{case.slug}/"' in scenario_page
    assert "case study" not in scenario_page


def test_case_page_warns_if_expected_call_breaks_schema(owner_client: Client) -> None:
    form = owner_client.get("/cases/new/?example=1").context["form"]
    typed = {name: form[name].value() or "" for name in form.fields} | {"save": "1"}
    right = read_html(owner_client.post("/cases/new/", typed, follow=True))
    slip = typed | {"expect": typed["expect"].replace("evening", "night")}
    wrong = read_html(owner_client.post("/cases/new/", slip, follow=True))
    assert "do not match the tools' schemas" not in right
    assert "do not match the tools' schemas" in wrong
    assert "schedule_delivery $.window" in wrong


def test_case_form_lists_available_models_first(owner_client: Client) -> None:
    make_model(
        "tiny", provider=make_provider("A local one", base_url="", service="local-own", kind=Provider.Kind.LOCAL)
    )
    personas = make_provider("Personas", base_url="", service="simulated", kind=Provider.Kind.SIMULATED)
    for name in ("slow", "perfect"):
        make_model(name, provider=personas)
    ServiceAddress.objects.create(name="simulated", host="here", url="http://x", ready_at="2026-01-01T00:00Z")
    choices = owner_client.get("/cases/new/").context["run_form"].fields["model"].choices
    assert [(title, [name for _, name in models]) for title, models in choices] == [
        ("Personas", ["perfect (simulated)", "slow (simulated)"]), ("A local one: not running", ["tiny"]),
    ]  # fmt: skip


def test_case_page_preselects_model_of_last_run(owner_client: Client) -> None:
    form = owner_client.get("/cases/new/?example=1").context["form"]
    owner_client.post("/cases/new/", {name: form[name].value() or "" for name in form.fields} | {"save": "1"})
    case, (_, second) = Case.objects.get(), (make_model("first"), make_model("second"))
    make_cell(make_config(make_run(), second), case.slug)
    assert f'value="{second.pk}" selected' in read_html(owner_client.get(f"/cases/{case.slug}/"))


def test_case_pages_link_to_trials_of_every_kind_of_run(owner_client: Client) -> None:
    form = owner_client.get("/cases/new/?example=1").context["form"]
    owner_client.post("/cases/new/", {name: form[name].value() or "" for name in form.fields} | {"save": "1"})
    case = Case.objects.get()
    for run in (make_run(), make_run(simulated=True), make_run(imported=True, origin={"kind": "bundle"})):
        make_trials(make_cell(make_config(run), scenario=case.slug), **{"pass": 2, "fail": 1})
    for page in (f"/cases/{case.slug}/", "/cases/", f"/scenarios/{case.slug}/"):
        link = re.search(r'href="(/trials/\?scenario=[^"]+)"', read_html(owner_client.get(page)))
        assert link, page
        assert 'data-total="9"' in read_html(owner_client.get(html.unescape(link[1]))), page


def test_scenario_page_offers_copy_or_says_why_not(owner_client: Client) -> None:
    for slug, seed in (("happy_path", ""), ("recovery_busy", "7")):
        page = read_html(owner_client.get(f"/scenarios/{slug}/", {"seed": seed}))
        found = re.search(r'href="(/cases/new/\?scenario=[^"]+)"', page)
        assert found is not None
        response = owner_client.get(html.unescape(found[1]))
        assert f"A copy of the scenario {slug}" in read_html(response)
        assert response.context["form"]["title"].value() == f"Copy of {slug}"
        assert ("drawn from seed 7" in read_html(response)) == bool(seed)
    page = read_html(owner_client.get("/scenarios/agent_sql/"))
    assert "Copy as test case" not in page
    assert "a program judges this scenario" in page
    assert owner_client.get("/cases/new/", {"scenario": "agent_sql"}).status_code == 404
    assert owner_client.get("/cases/new/", {"scenario": "no\x00body"}).status_code == 404


def test_case_form_copy_of_scenario_keeps_every_field(owner_client: Client) -> None:
    form = owner_client.get("/cases/new/", {"scenario": "long_arguments_guard"}).context["form"]
    filled = {name: form[name].value() for name in form.fields if form[name].value()} | {"further": "And now?"}
    page = read_html(owner_client.post("/cases/new/", filled | {"group": "mine"}, follow=True))
    for text in (
        "own_mine",
        "arguments_too_large",
        "And now?",
        "max_tool_args_bytes",
        "works on the draft of the state",
    ):
        assert text in page
    slug = Case.objects.get().slug
    again = owner_client.get(f"/cases/{slug}/edit/").context["form"]
    assert {name: again[name].value() for name in ("group", "behaviour", "control", "workspace")} == {
        "group": "mine", "behaviour": "arguments_too_large", "control": False, "workspace": filled["workspace"],
    }  # fmt: skip
    assert owner_client.get(f"/scenarios/{slug}/").status_code == 200


LONG_TEXT = "x" * 2000
GARBAGE = [
    "\x00",
    "{",
    "[[[[",
    "- a\n- b",
    '{"a": {"$type": 1}}',
    "{arguments.x}",
    '"\\ud800"',
    LONG_TEXT,
    "1e999",
    "é",
]
CASE_FIELDS = [
    "tools", "message", "expect", "title", "set", "system", "results", "start", "turns", "parallel", "further", "group",
    "behaviour", "control", "workspace", "settings", "read_number",
]  # fmt: skip
# Garbage by the field that refuses it; every other field refuses all of it.
REFUSED_GARBAGE: dict[str, list[str]] = {
    "message": ["\x00"],
    "title": ["\x00", LONG_TEXT],
    "set": ["\x00", LONG_TEXT],
    "system": ["\x00"],
    "start": [text for text in GARBAGE if text != '{"a": {"$type": 1}}'],
    "parallel": [],
    "control": [],
    "further": ["\x00", "[[[["],
    "group": [text for text in GARBAGE if text != "1e999"],
}


@pytest.mark.parametrize("field", CASE_FIELDS)
def test_case_form_refuses_garbage_that_is_no_valid_value(owner_client: Client, field: str) -> None:
    assert set(CASE_FIELDS) == set(owner_client.get("/cases/new/").context["form"].fields)
    for text in GARBAGE:
        response = owner_client.post("/cases/new/", CASE | {field: text}, follow=True)
        is_refused = text in REFUSED_GARBAGE.get(field, GARBAGE)
        assert response.status_code == (422 if is_refused else 200), text
        if is_refused:
            assert set(response.context["form"].errors) == {field}


def test_get_model_choices_begins_with_own_models(owner_client: Client) -> None:
    ServiceAddress.objects.create(name="local-own", host="here", url="http://x", ready_at="2026-01-01T00:00Z")
    local = make_provider("A local one", base_url="", service="local-own", kind=Provider.Kind.LOCAL)
    make_model("smollm", provider=local)
    make_model("agent", provider=make_provider("Mine", base_url="http://127.0.0.1:8799"))
    assert [title for title, _ in get_model_choices()] == ["Mine", "A local one"]
