"""Decision records: saving, pages, confirmation runs and exports."""

import json

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import DecisionRecord, Run, RunConfig

pytestmark = pytest.mark.django_db


def test_record_page_saves_decision_and_exports_it(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 76})
    owner_client.post("/decide/records/", {"want": "fastest", "success": "90", "within": "20", "title": "Bot"})
    record = DecisionRecord.objects.get()
    assert "Bot" in read_html(owner_client.get("/decide/records/"))
    page = read_html(owner_client.get(f"/decide/records/{record.pk}/"))
    assert "Confirm on new trials" in page
    assert "data-newer" not in page
    make_trial(cell, "fail")
    mark_stale([cell.pk])
    recompute_stale_cells()
    assert "Newer data differ" in read_html(owner_client.get(f"/decide/records/{record.pk}/"))
    whole = json.loads(owner_client.get(f"/decide/records/{record.pk}/record.json").content)
    assert whole["evidence"][0]["tried"] == 76
    for kind in ("csv", "md"):
        assert "vendor/model-a" in read_html(owner_client.get(f"/decide/records/{record.pk}/record.{kind}"))


def test_record_page_offers_no_promotion_without_a_model(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 76})
    owner_client.post("/decide/records/", {"want": "fastest"})
    address = f"/decide/records/{DecisionRecord.objects.get().pk}/"
    assert "Promote to an alias" in read_html(owner_client.get(address))
    RunConfig.objects.update(model=None)
    assert "Promote to an alias" not in read_html(owner_client.get(address))


def test_record_page_shows_no_success_for_cost_without_success(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run())), **{"fail": 40})
    owner_client.post("/decide/records/", {"want": "fastest"})
    assert "no success" in read_html(owner_client.get(f"/decide/records/{DecisionRecord.objects.get().pk}/"))


def test_record_page_reports_finished_confirmation_as_final(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 76})
    owner_client.post("/decide/records/", {"want": "fastest"})
    record, confirmation = DecisionRecord.objects.get(), make_run(purpose="confirm", state=Run.State.RUNNING)
    make_trials(make_cell(make_config(confirmation)), **{"pass": 2})
    DecisionRecord.objects.update(confirmation=confirmation)
    address = f"/decide/records/{record.pk}/"
    assert "end-to-end success so far 2 of 2" in read_html(owner_client.get(address))
    Run.objects.update(state=Run.State.FINISHED)
    text = read_html(owner_client.get(address))
    assert "end-to-end success 2 of 2. Saving the result" in text
    assert "so far" not in text
    confirmation.trials.all().delete()
    assert "Save this result" not in read_html(owner_client.get(address))


@pytest.mark.parametrize("typed", [{"trials": "-1"}, {"trials": "x"}, {"action": "keep"}, {}, {"trials": "5"}])
def test_record_buttons_say_why_they_cannot_act(owner_client: Client, typed: dict[str, str]) -> None:
    owner_client.post("/decide/records/", {})
    record = DecisionRecord.objects.get()
    response = owner_client.post(f"/decide/records/{record.pk}/act/", typed, follow=True)
    assert response.status_code == 200
    assert 'class="banner notice error"' in read_html(response)


def test_refused_confirmation_keeps_entered_number(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 76})
    owner_client.post("/decide/records/", {"want": "fastest"})
    url = f"/decide/records/{DecisionRecord.objects.get().pk}/"
    page = read_html(owner_client.post(f"{url}act/", {"action": "confirm", "trials": "4321"}, follow=True))
    assert 'value="4321"' in page


def test_record_page_of_unknown_record_is_404(owner_client: Client) -> None:
    assert owner_client.get("/decide/records/999/").status_code == 404
    assert owner_client.get("/decide/records/999/record.json").status_code == 404
