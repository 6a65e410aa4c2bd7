import pytest
from django.test import Client

from tests.lab.conftest import scripted as scripted  # a provider that solves every state scenario
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.models import Run, Trial
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(scripted: ScriptedServer) -> Run:
    model = make_scripted_model(scripted)
    run = launch_run(model)
    run_worker_session(model)
    return run


def test_what_if_page_shows_changed_outcomes_and_counts(owner_client: Client, run: Run) -> None:
    answer = owner_client.get("/what-if/", {"run": str(run.pk), "max_turns": "2", "ablate": "1"})

    shown = read_html(answer)
    assert answer.status_code == 200
    assert "3 pass → fail" in shown
    assert "9 before the replay, 9 after it" in shown
    assert "Effect of each transform" in shown
    assert 'data-copy=""' in shown  # the form changes the address without loading a page


def test_what_if_page_returns_only_result_to_htmx(owner_client: Client, run: Run) -> None:
    trial = Trial.objects.filter(run=run)[0]

    answer = owner_client.get("/what-if/", {"trial": str(trial.pk)}, headers={"hx-request": "true"})

    shown = read_html(answer)
    assert 'id="found"' in shown
    assert "<html" not in shown


def test_trial_page_links_to_what_if_of_trial_and_cell(owner_client: Client, run: Run) -> None:
    trial = Trial.objects.filter(run=run)[0]

    shown = read_html(owner_client.get(f"/trials/{trial.pk}/"))

    assert f"/what-if/?trial={trial.pk}" in shown
    assert f"/what-if/?cell={trial.cell_id}" in shown


@pytest.mark.parametrize("query", ["", "cell=x", "run=999999", "trial=0", "cell=" + "9" * 40])
def test_what_if_page_of_unknown_rows_is_404(owner_client: Client, query: str) -> None:
    assert owner_client.get(f"/what-if/?{query}").status_code == 404
