"""Trial page and trial list: escaped text of models, steps, verdicts, columns and exports."""

import json
import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django import DjangoAssertNumQueries

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_step,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.lab.results.trial.test_page import make_failed_trial
from tests.page_html import read_html
from tests.web.html_forms import read_forms
from toolbench.engine.types import JsonObject
from toolbench.lab.models import AuditEntry, Trial
from toolbench.lab.results.trial import repeats

pytestmark = pytest.mark.django_db

SCRIPT = "<script>document.title='owned'</script>"


def test_trial_pages_escape_markup_of_model(owner_client: Client) -> None:
    config = make_config(make_run(title=SCRIPT), make_model(SCRIPT))
    trial = make_trial(make_cell(config), "fail", sentence=SCRIPT, final_text=SCRIPT.encode(), upstream=SCRIPT)
    call = {"name": SCRIPT, "arguments": SCRIPT, "id": SCRIPT}
    facts = {
        "message": {"content": SCRIPT},
        "text": SCRIPT,
        "calls": [call],
        "findings": [{"code": "x", "message": SCRIPT, "path": SCRIPT}],
    }
    make_step(trial, bodies={"response": SCRIPT.encode(), "facts": facts})
    refused = {"arguments": {SCRIPT: SCRIPT}, "envelope": {"errors": [{"code": SCRIPT, "message": SCRIPT}]}}
    make_step(trial, kind="tool", tool_name=SCRIPT, ok=False, bodies={"facts": refused}, error_code="TOOL_NOT_ALLOWED")
    for path in (f"/trials/{trial.pk}/?step=0.calls", f"/trials/{trial.pk}/", "/trials/", f"/runs/{trial.run_id}/"):
        assert "<script>document" not in read_html(owner_client.get(path))


def test_trial_page_shows_nul_and_lone_surrogates(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())), final_text=b"a\0b\xed\xa0\x80c")
    make_step(trial, bodies={"response": b'{"x": "\\u0000 \\ud800"}', "facts": {"message": {"content": "\0\ud800"}}})
    response = owner_client.get(f"/trials/{trial.pk}/")
    assert response.status_code == 200
    assert "a␀b" in read_html(response)


def test_trial_page_opens_step_of_address(owner_client: Client) -> None:
    trial = make_failed_trial()
    text = read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.response"))
    assert "Turn 1, raw response" in text


def test_trial_page_polls_only_running_trial(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    running, done = make_trial(cell, "running"), make_trial(cell)
    assert "hx-trigger" in read_html(owner_client.get(f"/trials/{running.pk}/"))
    assert "hx-trigger" not in read_html(owner_client.get(f"/trials/{done.pk}/"))
    polled = [owner_client.get(f"/trials/{item.pk}/", headers={"HX-Request": "true"}) for item in (running, done)]
    assert [item.headers.get("HX-Refresh") for item in polled] == [None, "true"], "the verdict is above what is polled"


@pytest.mark.parametrize("outcome", ["running", "fail"])
def test_trial_page_menu_has_link_to_page_without_javascript(owner_client: Client, outcome: str) -> None:
    trial = make_trial(make_cell(make_config(make_run())), outcome)
    text = read_html(owner_client.get(f"/trials/{trial.pk}/?view=steps"))
    menu = text.partition("Use this trial</summary>")[2].partition("</details>")[0]
    address = f"/trials/{trial.pk}/?view=steps"
    assert f'href="{address}" data-copy="{address}"' in menu
    assert "<button" not in menu


def test_trial_note_is_saved_and_changes_no_outcome(owner_client: Client) -> None:
    trial = make_failed_trial()
    owner_client.post(f"/trials/{trial.pk}/note/", {"label": "odd", "note": "ask them", "next": "https://evil.test/"})
    after = Trial.objects.get(pk=trial.pk)
    assert (after.label, after.note, after.outcome) == ("odd", "ask them", "fail")


def test_trial_note_of_two_users_is_not_overwritten(owner_client: Client) -> None:
    trial = make_failed_trial()
    Trial.objects.filter(pk=trial.pk).update(note="first line\nsecond line")
    path = f"/trials/{trial.pk}/note/"
    read = {"read_label": "", "read_note": "first line\r\nsecond line"}  # as a browser sends it
    for _ in range(2):  # the same text again is no conflict
        assert owner_client.post(path, read | {"label": "odd", "note": "ask Ana"}).status_code == 302
    shared = f"/trials/{trial.pk}/?outcome=fail"
    refused = owner_client.post(path, read | {"label": "", "note": "ask Bo", "next": shared})
    assert refused.status_code == 422
    page = read_html(refused)
    assert "This note was changed after you opened the page." in page
    assert "ask Bo</textarea>" in page
    assert Trial.objects.get(pk=trial.pk).note == "ask Ana"
    hidden = {
        control["name"]: control["value"]
        for form in read_forms(page)
        for control in form.controls
        if "value" in control
    }
    assert (hidden["read_label"], hidden["read_note"], hidden["next"]) == ("odd", "ask Ana", shared)
    again = {"read_label": "odd", "read_note": "ask Ana", "label": "", "note": "ask Bo"}
    assert owner_client.post(path, again).status_code == 302
    assert Trial.objects.get(pk=trial.pk).note == "ask Bo"
    assert owner_client.post("/trials/999999/note/", again).status_code == 404


def test_trial_page_reports_dropped_tools(owner_client: Client) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "fail", tools_dropped=True, rendered_prompt=b"<|im_start|>")
    text = read_html(owner_client.get(f"/trials/{trial.pk}/"))
    assert "The server dropped the tools" in text
    assert "&lt;|im_start|&gt;" in text


def test_trial_page_reports_tool_not_executed_with_parse_error(owner_client: Client) -> None:
    fields = {"parse_error_turns": 1, "fallback_turns": 2, "asked_again": 1, "not_executed": True}
    trial = make_trial(make_cell(make_config(make_run())), "fail", **fields)
    error: JsonObject = {
        "mode": "json_fallback",
        "error": "No call",
        "snippet": "{北",
        "call": None,
        "repairs": [],
        "truncated": False,
    }
    make_step(trial, bodies={"facts": {"notice": "Tool not executed: no call.", "parse_errors": [error]}})
    text = read_html(owner_client.get(f"/trials/{trial.pk}/?step=0.calls"))
    for expected_text in (
        "Tool not executed: no call.",
        "Parse error (json_fallback)",
        "No call: {北",
        "none ended the trial",
    ):
        assert expected_text in text
    assert "the first attempt did not pass" in text
    assert "deprecated" in text


def test_trial_page_counts_repeats_that_it_does_not_list(owner_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MAX_REPEATS", 2)
    cell = make_cell(make_config(make_run()))
    trials = [make_trial(cell, "pass", index=index) for index in (1, 2, 3)]
    recompute_stale_cells()
    page = read_html(owner_client.get(f"/trials/{trials[2].pk}/"))
    assert "Trial 3 of 3" in page
    assert "Only the first 2 of 3 repeats are listed" in page


def test_trial_page_of_unknown_trial_is_404(owner_client: Client) -> None:
    assert owner_client.get("/trials/424242/").status_code == 404


def test_trial_page_compares_with_nearest_pass_and_escapes_markup(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    odd = [{"name": "b\ud800", "arguments": {}}]
    make_step(bad, bodies={"facts": {"text": SCRIPT, "calls": odd}})
    make_step(good, bodies={"facts": {"text": "Done."}})
    recompute_stale_cells()
    text = read_html(owner_client.get(f"/trials/{bad.pk}/?outcome=fail&level=parsed"))
    assert "<script>document" not in text
    assert 'aria-current="page">Differences' in text
    assert "<ins>Done.</ins>" in text
    assert 'href="?outcome=fail&amp;view=differences&amp;level=raw#diff"' in text


def test_trial_page_of_unsent_trial_has_no_diff_view(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    unsent, good = make_trial(cell, "na"), make_trial(cell)
    make_step(good, bodies={"facts": {"text": "Done."}})
    recompute_stale_cells()
    assert "view=differences" not in read_html(owner_client.get(f"/trials/{unsent.pk}/"))


@pytest.mark.parametrize("query", ["", "?view=steps", "?step=0.calls", "?view=differences"])
def test_trial_page_needs_12_queries_at_most(
    owner_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries, query: str
) -> None:
    cell = make_cell(make_config(make_run()))
    bad, good = (make_trial(cell, outcome, failure_class="text_instead_of_call") for outcome in ("fail", "pass"))
    make_model("vendor/model-a", provider=make_provider("Elsewhere"))
    for trial in (bad, good):
        make_step(trial, bodies={"facts": {"text": "Done."}})
    recompute_stale_cells()
    with django_assert_max_num_queries(12):
        assert owner_client.get(f"/trials/{bad.pk}/{query}").status_code == 200


def test_trial_page_begins_with_conversation_and_links_steps(owner_client: Client) -> None:
    text = read_html(owner_client.get(f"/trials/{make_failed_trial().pk}/"))
    assert 'aria-current="page">Conversation' in text
    assert 'href="?step=0.calls#step"' in text
    assert 'id="step"' not in text
    assert "The task has no fixed arguments for state_patch" in text


def test_trial_page_steps_view_opens_first_bad_step(owner_client: Client) -> None:
    text = read_html(owner_client.get(f"/trials/{make_failed_trial().pk}/?view=steps"))
    assert "Turn 1, dispatch of state_patch" in text
    assert 'aria-current="step"' in text


def test_human_verdict_is_saved_shown_and_audited(owner_client: Client) -> None:
    trial = make_failed_trial()
    page = f"/trials/{trial.pk}/"
    answer = owner_client.post(f"{page}verdict/", {"verdict": "pass", "reason": SCRIPT, "next": f"{page}?step=0.calls"})
    assert answer.headers["Location"] == f"{page}?step=0.calls"
    text = read_html(owner_client.get(page))
    assert "the judge is wrong" in text
    assert "<script>document" not in text
    entry = AuditEntry.objects.get()
    assert (entry.subject, entry.url) == (f"human verdict on trial {trial.pk}", page)
    assert f'href="{page}' in read_html(owner_client.get("/trials/?search=human%3Awrong"))


def test_human_verdict_without_reason_is_refused(owner_client: Client) -> None:
    page = f"/trials/{make_failed_trial().pk}/"
    answer = owner_client.post(f"{page}verdict/", {"verdict": "pass", "next": "https://evil.test/"}, follow=True)
    assert answer.redirect_chain == [(page, 302)]
    assert "Nothing was saved. The reason is missing. Enter one." in read_html(answer)
    assert not AuditEntry.objects.exists()
    assert owner_client.post("/trials/424242/verdict/", {"verdict": "pass"}).status_code == 404


def test_refused_human_verdict_is_shown_again_once(owner_client: Client) -> None:
    page = f"/trials/{make_failed_trial().pk}/"
    entered = {"verdict": "pass", "reason": "wrong <city> " * 400, "next": f"{page}?step=0.calls"}
    assert "Shorten it to 4,000." in read_html(answer := owner_client.post(f"{page}verdict/", entered, follow=True))
    assert "wrong &lt;city&gt; wrong" in read_html(answer)
    assert re.search(r'value="pass"\s+required\s+checked', read_html(answer))
    assert "wrong &lt;city&gt;" not in read_html(owner_client.get(page))


def test_trial_list_takes_columns_and_density_from_address(owner_client: Client) -> None:
    make_failed_trial()
    address = "/trials/?outcome=fail&trial_column=path&trial_column=got&density=comfortable"
    text = read_html(owner_client.get(address))
    assert re.findall(r'<th scope="col" class="col-([a-z]+)', text) == ["trial", "path", "got"]
    kept_parameters = "trial_column=path,got&amp;density=comfortable"
    assert f'href="/matrix/?{kept_parameters}"' in text
    assert f"outcome=fail&amp;{kept_parameters}" in text
    assert 'class="dense comfortable"' in text
    assert owner_client.get("/trials/?trial_column=%00,x&density=huge").status_code == 200


def test_trial_page_neighbours_stay_in_run_without_filter(owner_client: Client) -> None:
    first, second = (make_trial(make_cell(make_config(make_run()))) for _ in range(2))
    text = read_html(owner_client.get(f"/trials/{first.pk}/?density=compact"))
    assert f"/trials/{second.pk}/" not in text


@pytest.mark.parametrize("query", ["", "?trial_column=expected,got&sort=-cause&search=model:a"])
def test_trial_list_needs_12_queries_at_most(
    owner_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries, query: str
) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 30, "fail": 30})
    with django_assert_max_num_queries(12):
        assert owner_client.get(f"/trials/{query}").status_code == 200


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_trial_list_export_has_filtered_trials(owner_client: Client, kind: str) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2, "fail": 1})
    link = f"/trials/export.{kind}?outcome=fail"
    assert f'href="{link}"' in read_html(owner_client.get("/trials/?outcome=fail"))
    response = owner_client.get(link)
    assert response.headers["Content-Disposition"] == f'attachment; filename="toolbench-trials.{kind}"'
    lines = read_html(response).splitlines()
    if kind == "csv":
        assert lines[0].startswith("trial_id,simulated,outcome,model,sampling_profile")
        assert len(lines) == 2
    else:
        rows = [json.loads(line) for line in lines] if kind == "jsonl" else json.loads(response.content)["rows"]
        assert [(row["outcome"], row["expected_calls"]) for row in rows] == [("fail", "state_patch")]


@pytest.mark.django_db(transaction=True)
def test_trial_list_is_operated_by_keys(browser_page: Page) -> None:
    cell = make_cell(make_config(make_run()))
    for reason in ("First reason.", "Second reason."):
        make_trial(cell, "fail", sentence=reason)
    make_trial(cell)
    recompute_stale_cells()
    browser_page.goto("/trials/")
    browser_page.wait_for_load_state("networkidle")
    peek = browser_page.locator("#peek")
    browser_page.keyboard.press("j")
    browser_page.keyboard.press("p")
    expect(peek).to_contain_text("First reason.")
    browser_page.keyboard.press("j")
    expect(peek).to_contain_text("Second reason.")
    expect(browser_page).to_have_url(re.compile(r"/trials/$"))
    browser_page.keyboard.press("Escape")
    expect(peek).to_be_hidden()
    browser_page.locator("[data-peek-open]").first.click()
    expect(peek.get_by_role("link", name="Open")).to_be_visible()
    browser_page.keyboard.press("p")
    expect(peek).to_be_hidden()
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("h1")).to_contain_text("First reason.")


@pytest.mark.django_db(transaction=True)
def test_typed_query_of_trial_list_is_kept_by_links(browser_page: Page) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 1, "fail": 1})
    browser_page.goto("/trials/")
    browser_page.locator("#search").press_sequentially("outcome:fail")
    expect(browser_page.locator("[data-total='1']")).to_be_visible()
    typed = "search=outcome%3Afail"
    for link in ("nav[aria-label=Scope] a >> text=My runs", ".tab-tools a[data-copy] >> nth=0"):
        expect(browser_page.locator(link)).to_have_attribute("href", re.compile(typed))
    browser_page.get_by_role("navigation", name="Scope").get_by_role("link", name="Simulated").click()
    expect(browser_page).to_have_url(re.compile(rf"/trials/\?{typed}&demo=1$"))
    expect(browser_page.locator("#search")).to_have_value("outcome:fail")


def test_trial_page_names_behaviour_under_test(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()), "missing_workspace_id")
    trial = make_trial(cell, behaviour_seen=True, paths="tool_use,text")
    text = " ".join(read_html(owner_client.get(f"/trials/{trial.pk}/")).split())
    assert "no call passes a workspace_id: yes" in text
    assert "<dd>tool_use, text</dd>" in text
    assert "<dt>Instance</dt><dd>fixed</dd>" in text


def test_trial_list_says_which_term_it_ignores(owner_client: Client) -> None:
    make_trial(make_cell(make_config(make_run())), "fail")
    text = read_html(owner_client.get("/trials/?search=outcome:wrong"))
    assert "Ignored filters: outcome:wrong." in text
    assert "The filter outcome takes one of pass, fail" in text
    assert 'value="outcome:wrong"' in text
    synonym = read_html(owner_client.get("/trials/?search=outcome:failed"))
    assert "Ignored filters" not in synonym
    assert 'data-total="1"' in synonym


def test_trial_list_says_which_filters_it_ignores_by_label(owner_client: Client) -> None:
    text = read_html(owner_client.get("/trials/?cause_version=x&without=x&alike=x&had=x&search=" + "x" * 2000))
    labels = "Same settings, Omitted scenario versions, Answers and retries, Version of the causes, Query"
    assert f"Ignored filters: {labels}." in text


def test_trial_list_names_filters_by_label(owner_client: Client) -> None:
    assert "Scenario group: tools" in " ".join(read_html(owner_client.get("/trials/?group=tools")).split())


def test_trial_list_says_which_words_it_cannot_search(owner_client: Client) -> None:
    text = read_html(owner_client.get('/trials/?search=lost "ab"'))
    assert "“ab” is ignored: a search needs a letter or a digit" in text


def test_trial_list_empty_offers_run_or_clearing_of_filters(owner_client: Client) -> None:
    empty = read_html(owner_client.get("/trials/"))
    assert "No trial yet" in empty
    for text in ("Clear the filters", "0 trials match.", "Narrow the list"):
        assert text not in empty, text
    filtered = read_html(owner_client.get("/trials/?outcome=fail"))
    assert "No trial matches" in filtered
    assert "Clear the filters" in filtered
    assert "0 trials match." in filtered
    assert "Narrow the list" in filtered
