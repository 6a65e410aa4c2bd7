"""Operator: corrects a wrong key in one form and retries the trials with infrastructure errors."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Provider, Run
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, error_reply


def reply_with_right_key_only(seen: ReceivedRequest) -> ScriptedReply:
    right = seen.headers.get("authorization") == "Bearer sk-right"
    return answer_correctly(seen) if right else error_reply(401, "Incorrect API key provided: sk-wr***ng.")


def test_operator_corrects_key_and_retries_only_failed_trials(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = browser_page
    make_scripted_model(start_server(answer_correctly), "open")
    locked = make_scripted_model(
        start_server(reply_with_right_key_only), "locked", key_source="stored", key_encrypted=encrypt("sk-wrong")
    )
    start_run(page, RunForm(models=("open", "locked"), trials=3))
    wait_until_finished(page, 6)
    address, run = page.url, Run.objects.get()
    errored = run.trials.filter(outcome="infra")
    assert set(errored.values_list("config__model_name", "failure_class")) == {("locked", "authentication_failed")}
    before = {trial.pk: (trial.execution, trial.finished_at) for trial in run.trials.filter(outcome="pass")}
    assert len(before) == 3
    group = page.get_by_role("region", name="Failure groups", exact=True)
    expect(group.get_by_role("row", name="authentication_failed")).to_contain_text("3")
    group.get_by_role("link", name="open", exact=True).click()
    expect(page.get_by_text("Check the key and the account at the provider.")).to_be_visible()

    page.goto(f"/providers/{locked.provider_id}/")
    page.get_by_label("Key", exact=True).fill("sk-right")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.goto(address)
    page.get_by_role("button", name="Retry the 3 infrastructure errors").click()

    expect(page.get_by_text("3 trials with infrastructure errors are queued again.")).to_be_visible()
    wait_until_finished(page, 6)
    again = run.trials.exclude(pk__in=before)
    assert set(again.values_list("outcome", "execution")) == {("pass", 2)}
    assert {trial.pk: (trial.execution, trial.finished_at) for trial in run.trials.filter(pk__in=before)} == before
    assert "sk-wrong" not in page.content()
    assert not Provider.objects.get(pk=locked.provider_id).paused_reason
