"""Export and import of test cases as JSON Lines or YAML, and drafts built from trials."""

import json
from dataclasses import replace

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_provider, make_run, make_step, make_trial
from tests.lab.cases.test_edit import DRAFT, saved
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.cases.drafts import parse_draft
from toolbench.lab.cases.edit import delete_case
from toolbench.lab.cases.files import CaseImportError, import_cases, render_cases
from toolbench.lab.cases.from_trial import CaseNotCreatedError, build_draft_from_trial
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Case, CaseSet, Provider
from toolbench.providers.scripted_server import ScriptedServer

UNUSUAL_TEXT = "Straße \ud800 no 12:30\nline two: [x]"


def refuse_import(text: str) -> list[str]:
    with pytest.raises(CaseImportError) as caught:
        import_cases(text)
    assert not Case.objects.exists()
    return caught.value.sentences


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["jsonl", "yaml"])
def test_render_cases_and_import_cases_restore_case(kind: str) -> None:
    first = saved(replace(DRAFT, system=UNUSUAL_TEXT, results="cancel_order: {fixed: [1, null, 'no']}", turns=3))
    slug, definition = first.slug, first.versions.get().definition
    text = render_cases(kind, private=True)
    CaseSet.objects.all().delete()

    (again,) = import_cases(text, "Another set").new

    assert (again.slug, again.versions.get().definition) == (slug, definition)
    assert (again.title, again.set.name, again.set.public) == (first.title, "Another set", False)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["jsonl", "yaml"])
def test_import_cases_creates_once_and_adds_version_when_changed(kind: str) -> None:
    same, other = saved(DRAFT), saved(replace(DRAFT, system=UNUSUAL_TEXT, title="Other"))
    text = render_cases(kind, private=True)
    assert import_cases(text, "Another set").unchanged == (same, other)

    found = import_cases(text.replace("line two", "line three"))

    assert (found.new, found.changed, found.unchanged) == ((), (other,), (same,))
    assert sorted(Case.objects.values_list("slug", "current")) == sorted([(same.slug, 1), (other.slug, 2)])
    assert "1 test case (own-other) updated" in found.sentence
    assert "public" not in found.sentence
    CaseSet.objects.update(public=True)
    assert "of a public set, which exports include, updated" in import_cases(text).sentence
    assert CaseSet.objects.count() == 1


@pytest.mark.django_db
def test_import_cases_reads_lines_with_other_line_breaks_in_texts() -> None:
    message = "one\u2028two\u2029three\x85four"
    case = {"tools": {"name": "f"}, "messages": message, "expect": {"name": "f"}}
    lines = [json.dumps(case | {"title": title}, ensure_ascii=False) for title in ("One", "Two")]
    assert len(import_cases("\ufeff" + "\r\n".join(lines) + "\r\n").new) == 2
    cases = [json.loads(line) for line in render_cases("jsonl", private=True).splitlines()]
    assert [case["messages"][0]["content"] for case in cases] == [message] * 2


@pytest.mark.django_db
def test_import_cases_without_slug_matches_title_and_content() -> None:
    line = json.dumps({"title": "One", "tools": {"name": "f"}, "messages": "Hi", "expect": {"name": "f"}})
    (first,) = import_cases(line).new
    assert import_cases(line).unchanged == (first,)
    text = render_cases("jsonl", private=True)
    delete_case(first.slug)
    (restored,) = import_cases(text).new
    assert restored.slug == "own-one-2"
    assert import_cases(text).unchanged == (restored,)


@pytest.mark.django_db
def test_render_cases_omits_private_cases_by_default() -> None:
    saved()
    assert render_cases("jsonl") == ""
    CaseSet.objects.update(public=True)
    assert render_cases("jsonl")


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["jsonl", "yaml"])
def test_render_cases_masks_known_secrets(kind: str) -> None:
    make_provider("Texts", key_source=Provider.KeySource.STORED, key_encrypted=encrypt("sk-in-a-case-0123456789"))
    make_provider("Numbers", key_source=Provider.KeySource.STORED, key_encrypted=encrypt("20260415123456"))
    saved(
        replace(
            DRAFT,
            message="Cancel order 17 with sk-in-a-case-0123456789.",
            results="cancel_order: {fixed: {number: 20260415123456}}",
        )
    )
    text = render_cases(kind, private=True)
    assert "sk-in-a-case" not in text
    assert "20260415123456" not in text
    assert "Cancel order 17 with *" in text


@pytest.mark.django_db
def test_import_cases_of_2000_equal_titles_takes_21_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    first = saved(replace(DRAFT, title="Cancel"))
    make_cell(make_config(make_run()), "own-cancel-3")
    line = json.dumps(
        {"title": "Cancel", "set": "Many", "tools": {"name": "f"}, "messages": "Hi", "expect": {"name": "f"}}
    )
    with django_assert_max_num_queries(21):
        cases = import_cases(f"{line}\n" * 2000).new
    slugs = [case.slug for case in cases]
    assert (first.slug, slugs[0], slugs[1], slugs[-1]) == (
        "own-cancel",
        "own-cancel-2",
        "own-cancel-4",
        "own-cancel-2002",
    )
    assert len(set(slugs)) == Case.objects.exclude(pk=first.pk).count() == 2000


@pytest.mark.django_db
def test_import_cases_invalid_text_names_line_and_saves_nothing() -> None:
    good = json.dumps({"tools": {"name": "f"}, "messages": "Hi", "expect": {"name": "f"}})
    assert refuse_import(f"{good}\n\n{{}}\n")[0].startswith("Line 3: ")
    assert refuse_import(f"\ufeff{good}\r\n{{}}\r\n")[0].startswith("Line 2: ")
    assert refuse_import(f"{good}\n{{bad}}\n")[0].startswith("Line 2, column 2: ")
    yaml = "- tools: {name: f}\n  messages: Hi\n  expect:\n    name: g\n"
    assert refuse_import(yaml) == ["Line 4: There is no tool g. The tools are f."]
    assert refuse_import("") == ["The text contains no test case."]
    assert refuse_import("[1]")
    with_slugs = [json.loads(good) | {"slug": slug} for slug in ("own-a", "own-a")]
    assert refuse_import(json.dumps(with_slugs))[0].endswith(
        "An earlier test case has the slug own-a too. Change one of them."
    )
    for slug in ("happy_path", "own-", f"own-{'x' * 99}", 7, "own-\0"):
        assert "A slug begins with own-" in refuse_import(json.dumps(json.loads(good) | {"slug": slug}))[0]


@pytest.mark.django_db(transaction=True)
def test_build_draft_from_trial_has_tools_calls_and_results(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    run_worker_session(model)
    trial = run.trials.get()

    draft, note = build_draft_from_trial(trial.pk)
    _, case = parse_draft(draft)

    assert "which passed" in note
    assert [call.name for call in case.expect.calls] == ["state_get", "state_patch"]
    assert set(case.results) == {"state_get", "state_patch"}
    with pytest.raises(CaseNotCreatedError):
        build_draft_from_trial(trial.pk + 1)


@pytest.mark.django_db
def test_build_draft_from_trial_keeps_parallel_calls_of_scenario() -> None:
    run = make_run()
    found = {
        slug: build_draft_from_trial(make_trial(make_cell(make_config(run), slug), instance_kind="drawn").pk)[0]
        for slug in ("parallel_mixed", "happy_path")
    }
    assert [(item.parallel, item.turns) for item in found.values()] == [(True, 1), (False, None)]


@pytest.mark.django_db
def test_build_draft_from_failed_trial_copies_task_of_scenario(admin_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run()), "happy_path"), "fail")
    draft, note = build_draft_from_trial(trial.pk)
    _, case = parse_draft(draft)
    assert "did not pass" in note
    assert case.workspace
    assert case.expect.calls == ()
    assert len(case.expect.state) == 1
    form = admin_client.get(f"/cases/new/?trial={trial.pk}").context["form"]
    assert form["expect"].field.widget.attrs["rows"] == draft.expect.count("\n") + 2


@pytest.mark.django_db
@pytest.mark.parametrize("control", [True, False])
def test_build_draft_from_failed_trial_of_case_copies_no_call(control: bool) -> None:
    case = saved(replace(DRAFT, expect='{"no_call": true}', control=control))
    trial = make_trial(make_cell(make_config(make_run()), case.slug, scenario_version=1), "fail")
    call = {"name": "cancel_order", "arguments": '{"order": "17"}'}
    make_step(trial, kind="tool", bodies={"facts": {"call": call, "arguments": {"order": "17"}}})
    draft, note = build_draft_from_trial(trial.pk)
    _, definition = parse_draft(draft)
    assert (definition.expect.no_call, definition.expect.calls, definition.control) == (True, (), control)
    assert "A copy of the test case" in note


@pytest.mark.django_db
def test_build_draft_from_trial_with_unreadable_calls_expects_nothing() -> None:
    trial = make_trial(make_cell(make_config(make_run()), "happy_path"))
    make_step(trial, kind="tool", bodies={"facts": {"call": {"name": "state_get", "arguments": "{"}}})
    draft, note = build_draft_from_trial(trial.pk)
    assert draft.expect == ""
    assert "None of its calls could be read" in note


@pytest.mark.django_db
def test_build_draft_from_trial_without_call_expects_none() -> None:
    draft, note = build_draft_from_trial(make_trial(make_cell(make_config(make_run()), "happy_path")).pk)
    assert json.loads(draft.expect) == {"no_call": True}
    assert "which made no call, so no call is expected" in note


@pytest.mark.django_db
def test_case_pages_open_and_import_page_keeps_invalid_text(admin_client: Client) -> None:
    assert admin_client.get("/cases/new/?trial=99").status_code == 404
    assert admin_client.get("/cases/new/?trial=x").status_code == 404
    answer = admin_client.post("/cases/bring/", {"text": "{bad}"})
    assert answer.status_code == 422
    assert "Line 1, column 2" in read_html(answer)
    assert "{bad}" in read_html(answer)
    case = saved()
    assert admin_client.get(f"/cases/{case.slug}/").status_code == 200
    assert admin_client.get(f"/cases/{case.slug}/edit/").status_code == 200
    assert admin_client.get(f"/cases/{case.slug}/delete/").status_code == 200
    assert admin_client.get(f"/scenarios/{case.slug}/").status_code == 200
    assert admin_client.get("/cases/export.yaml?private=1").content.startswith(b"- slug: own-")
    assert admin_client.get("/cases/no-such/").status_code == 404
