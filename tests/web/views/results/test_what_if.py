import pytest
from django.test import Client

from tests.lab.conftest import scripted as scripted  # the provider that plays every state scenario right
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


def test_a_what_if_says_flips_bounds_and_that_nothing_was_sent(owner_client: Client, run: Run) -> None:
    answer = owner_client.get("/what-if/", {"run": str(run.pk), "max_turns": "2", "ablate": "1"})

    shown = read_html(answer)
    assert answer.status_code == 200
    assert "3 pass → fail" in shown
    assert "9 before, 9 after" in shown
    assert "What a verdict hangs on" in shown
    assert 'data-copy=""' in shown  # the address of the moment: the form changes it without a new page


def test_htmx_is_given_the_result_alone(owner_client: Client, run: Run) -> None:
    trial = Trial.objects.filter(run=run)[0]

    answer = owner_client.get("/what-if/", {"trial": str(trial.pk)}, headers={"hx-request": "true"})

    shown = read_html(answer)
    assert 'id="found"' in shown
    assert "<html" not in shown


def test_a_trial_page_leads_to_its_what_if(owner_client: Client, run: Run) -> None:
    trial = Trial.objects.filter(run=run)[0]

    shown = read_html(owner_client.get(f"/trials/{trial.pk}/"))

    assert f"/what-if/?trial={trial.pk}" in shown
    assert f"/what-if/?cell={trial.cell_id}" in shown


@pytest.mark.parametrize("query", ["", "cell=x", "run=999999", "trial=0", "cell=" + "9" * 40])
def test_what_is_not_there_is_said(owner_client: Client, query: str) -> None:
    assert owner_client.get(f"/what-if/?{query}").status_code == 404
