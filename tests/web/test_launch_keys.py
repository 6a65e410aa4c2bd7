"""Buttons that launch runs: a form that is sent twice launches one run."""

import html
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import launch_run
from tests.page_html import read_html
from tests.web.html_forms import read_forms
from tests.web.views.test_runs import build_form, make_local_model
from toolbench.lab.models import AuditEntry, Case, Model, Run, Trial
from toolbench.web.launch_keys import REUSED_KEY

__all__ = ["elsewhere"]  # fixture
pytestmark = pytest.mark.django_db
CASE = {"tools": '[{"name": "f"}]', "message": "Hi", "expect": '{"no_call": true}'}


@pytest.fixture
def model(transactional_db: None) -> Model:
    """Simulated model. Its database is not in a transaction, so that two requests can run at the same time."""
    return make_local_model()


def read_controls(response: Any) -> list[dict[str, str]]:
    return [control for form in read_forms(response.content.decode()) for control in form.controls]


def find_actions(response: Any) -> list[str]:
    """Return the URLs of the buttons of a page that have one of their own."""
    return [html.unescape(control["formaction"]) for control in read_controls(response) if "formaction" in control]


def read_key(response: Any) -> str:
    """Return the key in the form of a page."""
    return next(control["value"] for control in read_controls(response) if control.get("name") == "key")


def test_launch_form_start_pressed_twice_starts_one_run(
    owner_client: Client, model: Model, elsewhere: RunInThread
) -> None:
    fields = build_form(model)
    start, one_of_each, *_ = find_actions(owner_client.get("/runs/new/", fields))
    presses = [elsewhere(owner_client.post, start, fields) for _ in range(3)]
    addresses = {press.result(timeout=30).headers["Location"] for press in presses}
    run = Run.objects.get()
    assert addresses == {f"/runs/{run.pk}/"}
    assert AuditEntry.objects.filter(subject=f"run {run.pk}").count() == 1
    addresses = {owner_client.post(one_of_each, fields).headers["Location"] for _ in range(2)}
    assert addresses == {f"/runs/{Run.objects.exclude(pk=run.pk).get().pk}/"}


def test_launch_form_with_used_key_shows_plan_and_starts_nothing(owner_client: Client, model: Model) -> None:
    start = find_actions(owner_client.get("/runs/new/", build_form(model)))[0]
    owner_client.post(start, build_form(model))
    refused = owner_client.post(start, build_form(model, trials="2"))
    assert "this form was sent before with other content" in refused.content.decode()
    assert refused.context["plan"].trials == 2
    assert Run.objects.count() == 1
    owner_client.post(find_actions(refused)[0], build_form(model, trials="2"))
    assert Run.objects.count() == 2


def test_launch_form_of_deleted_run_is_refused(owner_client: Client, model: Model) -> None:
    start = find_actions(owner_client.get("/runs/new/", build_form(model)))[0]
    owner_client.post(start, build_form(model))
    Run.objects.update(deleted_at=timezone.now())
    assert "its run was deleted" in owner_client.post(start, build_form(model)).content.decode()


def test_launch_form_with_invalid_plan_keeps_key_unused(owner_client: Client, model: Model) -> None:
    start = find_actions(owner_client.get("/runs/new/", build_form(model)))[0]
    assert owner_client.post(start, build_form(model, trials="0")).status_code == 200
    assert owner_client.post(start, build_form(model)).status_code == 302


@pytest.mark.parametrize("action", ["repeat", "aa"])
def test_run_page_repeat_pressed_twice_starts_one_run(owner_client: Client, model: Model, action: str) -> None:
    run = launch_run(model)
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/?kind={action}"))
    (url,) = [form.name for form in read_forms(page) if "/act/" in form.name]
    addresses = {owner_client.post(url, {"action": action}).headers["Location"] for _ in range(2)}
    assert addresses == {f"/runs/{Run.objects.exclude(pk=run.pk).get().pk}/"}


def test_run_page_add_pressed_twice_adds_trials_once(owner_client: Client, model: Model) -> None:
    run = launch_run(model)
    cell = run.cells.get()
    page = owner_client.get(f"/runs/{run.pk}/")
    url = next(html.unescape(control["formaction"]) for control in read_controls(page) if control.get("value") == "add")
    fields = {"action": "add", "cell": str(cell.pk), "count": "2"}
    for is_reused in (False, True):
        answer = owner_client.post(url, fields, follow=True)
        assert answer.redirect_chain == [(f"/runs/{run.pk}/", 302)]
        assert (REUSED_KEY in answer.content.decode()) is is_reused
    assert Trial.objects.count() == 5
    refused = owner_client.post(url, fields | {"count": "3"}, follow=True)
    assert "this form was sent before with other content" in refused.content.decode()


def test_confirmation_of_paid_trials_pressed_twice_adds_them_once(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1})
    fields = {"action": "add", "cell": str(cell.pk), "count": "900"}
    confirmation = owner_client.post(f"/runs/{cell.run_id}/act/", fields)
    agreed = str(confirmation.context["needed"].max_paid_requests)
    for _ in range(2):
        owner_client.post(find_actions(confirmation)[0], fields | {"agreed": agreed})
    assert Trial.objects.count() == 901


def test_case_page_run_pressed_twice_starts_one_run(owner_client: Client, model: Model) -> None:
    owner_client.post("/cases/new/", CASE | {"save": "1"})
    path = f"/cases/{Case.objects.get().slug}/"
    fields = {"key": read_key(owner_client.get(path)), "model": str(model.pk), "trials": "2"}
    for is_reused in (False, True):
        answer = owner_client.post(path, fields, follow=True)
        assert answer.redirect_chain == [(path, 302)]
        assert (REUSED_KEY in answer.content.decode()) is is_reused
    assert Run.objects.get().trials.count() == 2
    refused = owner_client.post(path, fields | {"trials": "3"}, follow=True)
    assert "this form was sent before with other content" in refused.content.decode()


def test_case_form_save_and_run_pressed_twice_saves_one_case(
    owner_client: Client, model: Model, elsewhere: RunInThread
) -> None:
    key = read_key(owner_client.get("/cases/new/"))
    fields = CASE | {"key": key, "run": "1", "model": str(model.pk), "trials": "2"}
    presses = [elsewhere(owner_client.post, "/cases/new/", fields) for _ in range(3)]
    addresses = {press.result(timeout=30).headers["Location"] for press in presses}
    assert addresses == {f"/cases/{Case.objects.get().slug}/"}
    assert Run.objects.get().trials.count() == 2


def test_case_form_save_pressed_twice_saves_one_case(owner_client: Client) -> None:
    fields = CASE | {"key": read_key(owner_client.get("/cases/new/")), "save": "1"}
    addresses = {owner_client.post("/cases/new/", fields).headers["Location"] for _ in range(2)}
    assert addresses == {f"/cases/{Case.objects.get().slug}/"}
    owner_client.post(f"{addresses.pop()}delete/")
    assert "was deleted" in read_html(owner_client.post("/cases/new/", fields))
    assert Case.objects.filter(deleted_at=None).count() == 0


def test_case_form_saves_one_case_before_paid_requests_are_confirmed(owner_client: Client) -> None:
    paid = make_model()
    key = read_key(owner_client.get("/cases/new/"))
    fields = CASE | {"key": key, "run": "1", "model": str(paid.pk), "trials": "900"}
    for _ in range(2):
        assert owner_client.post("/cases/new/", fields).status_code == 302
    assert (Case.objects.count(), Run.objects.count()) == (1, 0)
