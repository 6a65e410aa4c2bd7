import pytest
from django.test import Client

from tests.lab.conftest import scripted as scripted  # the provider that plays every state scenario right
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.evals import scenarios
from toolbench.evals.judging import verdict
from toolbench.evals.scenarios import registry
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
STRICT = "happy_path_parallel"


@pytest.fixture
def corrected(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=(STRICT,), trials=2)
    run_worker_session(model)
    newest = scenarios.lookup_scenario(
        STRICT
    )  # version 1 is gone, and this one, which took its place, wants no two calls
    known = {scenario.slug: scenarios.list_versions(scenario.slug) for scenario in scenarios.list_scenarios()}
    monkeypatch.setattr(newest, "behaviour", "")
    monkeypatch.setattr(registry, "_index_versions", lambda: {**known, STRICT: (newest,)})
    return run


def test_a_button_judges_a_run_again_and_pages_show_what_changed(owner_client: Client, corrected: Run) -> None:
    assert "2 trials were judged by an older version" in read_html(owner_client.get(f"/runs/{corrected.pk}/"))

    shown = read_html(owner_client.post(f"/runs/{corrected.pk}/rejudge/", follow=True))

    assert "2 trials judged again, 2 fail → pass" in shown
    assert f"scenario 1, rules {verdict.VERSION}" in shown
    assert f"scenario 2, rules {verdict.VERSION}" in shown
    trial = read_html(owner_client.get(f"/trials/{corrected.trials.all()[0].pk}/"))
    assert "Judgements" in trial
    assert f"{STRICT}, version 2</a> (asked by version 1)" in trial
    assert "judged again" in read_html(owner_client.get(f"/runs/{corrected.pk}/"))


def test_a_run_that_is_not_there_is_said(owner_client: Client) -> None:
    assert owner_client.get("/runs/99999/judgements/").status_code == 404
    assert owner_client.post("/runs/99999/rejudge/").status_code == 404
