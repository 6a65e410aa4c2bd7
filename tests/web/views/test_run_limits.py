"""Run page in a browser: what a user types stays while the live part is replaced."""

import pytest
from playwright.sync_api import Page, expect

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def test_run_page_keeps_typed_limit_while_polling(browser_page: Page) -> None:
    run = make_run(state=Run.State.PAUSED, stopped_reason="The limit of requests is reached.", request_cap=10)
    make_trial(make_cell(make_config(run)), "running")
    recompute_stale_cells()
    browser_page.goto(f"/runs/{run.pk}/")
    field = browser_page.get_by_label("Requests, 0 used")
    field.fill("50")
    Run.objects.filter(pk=run.pk).update(requests_reserved=7)
    expect(browser_page.get_by_label("Requests, 7 used")).to_have_value("50")
    expect(browser_page.get_by_label("Requests, 7 used")).to_be_focused()
