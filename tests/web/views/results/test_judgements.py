import pytest
from django.test import Client

from tests.lab.conftest import scripted as scripted  # a provider that solves every state scenario
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
def run_judged_by_older_version(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=(STRICT,), trials=2)
    run_worker_session(model)
    newest = scenarios.lookup_scenario(STRICT)  # the only version from now on; it does not require two calls
    known = {scenario.slug: scenarios.list_versions(scenario.slug) for scenario in scenarios.list_scenarios()}
    monkeypatch.setattr(newest, "behaviour", "")
    monkeypatch.setattr(registry, "_index_versions", lambda: {**known, STRICT: (newest,)})
    return run


def test_rejudge_button_shows_changed_outcomes(owner_client: Client, run_judged_by_older_version: Run) -> None:
    assert "2 trials were judged by an older version" in read_html(
        owner_client.get(f"/runs/{run_judged_by_older_version.pk}/")
    )

    shown = read_html(owner_client.post(f"/runs/{run_judged_by_older_version.pk}/rejudge/", follow=True))

    assert "2 trials re-judged, 2 fail → pass" in shown
    assert f"scenario 1, rules {verdict.VERSION}" in shown
    assert f"scenario 2, rules {verdict.VERSION}" in shown
    trial = read_html(owner_client.get(f"/trials/{run_judged_by_older_version.trials.all()[0].pk}/"))
    assert "Judgements" in trial
    assert f"{STRICT}, version 2</a> (launched with version 1)" in trial
    assert "re-judged" in read_html(owner_client.get(f"/runs/{run_judged_by_older_version.pk}/"))


def test_judgements_page_of_unknown_run_is_404(owner_client: Client) -> None:
    assert owner_client.get("/runs/99999/judgements/").status_code == 404
    assert owner_client.post("/runs/99999/rejudge/").status_code == 404
