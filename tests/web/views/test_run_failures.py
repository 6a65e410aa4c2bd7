"""Failure groups on the page of a run."""

import re

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.page_html import read_html

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (3, "model-1, model-2, model-3 ASSERTION_FAILED"),
        (5, "model-1, model-2, model-3 All 5 models model-1, model-2, model-3, model-4, model-5 ASSERTION_FAILED"),
    ],
)
def test_run_page_names_all_models_of_a_failure_group(owner_client: Client, number: int, expected: str) -> None:
    run = make_run()
    for place in range(1, number + 1):
        make_trials(make_cell(make_config(run, make_model(f"model-{place}"))), **{"fail": 1})
    text = read_html(owner_client.get(f"/runs/{run.pk}/"))
    row = text.partition('id="groups"')[2].partition("<tbody>")[2].partition("</tr>")[0]
    assert expected in " ".join(re.sub(r"<[^>]+>", " ", row).split())
    assert row.count("/trials/?") == 1
