"""Pages and files with a cell whose figures cannot be summed: each answers, and the cell is named."""

import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.lab.metrics.test_set_aside import POISON
from tests.page_html import collapse_html
from toolbench.lab.metrics.cells import mark_uncomputable_stale, recompute_stale
from toolbench.lab.models import Cell, Run, Trial

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = (
    "/", "/runs/", "/runs/{run}/", "/runs/{run}/metrics/", "/runs/{run}/report.zip", "/runs/{run}/bundle.zip",
    "/runs/{run}/trials.csv", "/runs/{run}/trials.json", "/runs/{run}/judgements/", "/matrix/", "/matrix/?run={run}",
    "/matrix/export.csv", "/matrix/export.json", "/matrix/export.md", "/metrics/",
    "/compare/?a_run={run}&b_run={other}", "/compare/export.csv?a_run={run}&b_run={other}", "/decide/",
    "/decide/?run={run}", "/decide/recommendations/", "/decide/records/", "/latency/?run={run}", "/failures/",
    "/failures/?run={run}", "/trials/?run={run}", "/trials/{trial}/", "/what-if/?run={run}", "/models/", "/health/",
    "/compatibility/", "/scenarios/happy_path/",
)  # fmt: skip


def make_uncomputable_and_valid_cells(column: str) -> tuple[Cell, Cell]:
    """Make a run with an uncomputable and a valid cell, and another run; return the first and the other run's cell."""
    bad = make_cell(make_config(make_run()))
    beside = make_cell(bad.config, "chat_only")
    other = make_cell(make_config(make_run()))
    for outcome in ("pass", "fail"):
        make_step(make_trial(bad, outcome, **{column: POISON.get(column, 1.7e308)}))
        make_trial(beside, outcome)
        make_trial(other, outcome)
    recompute_stale()
    return Cell.objects.get(pk=bad.pk), Cell.objects.get(pk=other.pk)


def get_page(client: Client, address: str, **ids: Any) -> str:
    response = client.get(address.format(**ids))
    content = b"".join(response) if response.streaming else response.content
    assert response.status_code == 200, address
    return collapse_html(content.decode(errors="replace"))


@pytest.mark.parametrize("column", [*POISON, "cost"])
def test_pages_answer_with_uncomputable_cell(column: str, owner_client: Client) -> None:
    bad, other = make_uncomputable_and_valid_cells(column)
    trial = bad.trials.all()[0]
    for address in PAGES:
        get_page(owner_client, address, run=bad.run_id, other=other.run_id, trial=trial.pk)


def test_run_and_health_pages_name_uncomputable_cell(owner_client: Client) -> None:
    bad, other = make_uncomputable_and_valid_cells("input_tokens")
    for address in ("/runs/{run}/", "/health/"):
        text = get_page(owner_client, address, run=bad.run_id)
        assert "could not be computed" in text
        assert "vendor/model-a at Example, happy_path" in re.sub("<[^>]+>", "", text)
        assert "bigint out of range" in text
    assert f'href="/runs/{bad.run_id}/">Run {bad.run_id}' in get_page(owner_client, "/health/")
    assert "could not be computed" not in get_page(owner_client, "/runs/{run}/", run=other.run_id)
    assert "Cells that could not be computed: 1." in get_page(owner_client, "/matrix/")


def test_health_page_names_no_cell_of_deleted_run(owner_client: Client) -> None:
    bad, _ = make_uncomputable_and_valid_cells("requests")
    owner_client.post(f"/runs/{bad.run_id}/act/", {"action": "delete"})
    assert "could not be computed" not in get_page(owner_client, "/health/")


def test_run_and_health_pages_do_not_name_corrected_cell(owner_client: Client) -> None:
    bad, _ = make_uncomputable_and_valid_cells("input_tokens")
    Trial.objects.filter(cell=bad).update(input_tokens=400)
    mark_uncomputable_stale()
    recompute_stale()
    assert "could not be computed" not in get_page(owner_client, "/health/")
    assert "could not be computed" not in get_page(owner_client, "/runs/{run}/", run=bad.run_id)


@pytest.mark.parametrize("action", [{"action": "label", "label": "a"}, {"action": "delete"}, {"action": "cancel"}])
def test_run_actions_answer_with_uncomputable_cell(action: dict[str, Any], owner_client: Client) -> None:
    bad, _ = make_uncomputable_and_valid_cells("input_tokens")
    make_trial(bad, "queued")
    Run.objects.filter(pk=bad.run_id).update(state=Run.State.RUNNING)
    assert owner_client.post(f"/runs/{bad.run_id}/act/", action).status_code == 302
