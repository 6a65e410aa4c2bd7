"""An operator: a wrong key is the world's failure, is mended in one form, and only what it stopped is tried again."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Provider, Run
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, error_reply


def only_with_the_right_key(seen: ReceivedRequest) -> ScriptedReply:
    right = seen.headers.get("authorization") == "Bearer sk-right"
    return answer_correctly(seen) if right else error_reply(401, "Incorrect API key provided: sk-wr***ng.")


def test_a_wrong_key_is_mended_and_exactly_what_it_stopped_is_tried_again(
    browser_page: Page, catalogue: None, scripting: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = browser_page
    make_scripted_model(scripting(answer_correctly), "open")
    locked = make_scripted_model(
        scripting(only_with_the_right_key), "locked", key_source="stored", key_encrypted=encrypt("sk-wrong")
    )
    start_run(page, RunForm(models=("open", "locked"), trials=3))
    wait_until_finished(page, 6)
    address, run = page.url, Run.objects.get()
    errored = run.trials.filter(outcome="infra")
    assert set(errored.values_list("config__model_name", "failure_class")) == {("locked", "authentication_failed")}
    before = {trial.pk: (trial.execution, trial.finished_at) for trial in run.trials.filter(outcome="pass")}
    assert len(before) == 3
    group = page.get_by_role("region", name="Failures, grouped")
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
    assert {t.pk: (t.execution, t.finished_at) for t in run.trials.filter(pk__in=before)} == before
    assert "sk-wrong" not in page.content()
    assert not Provider.objects.get(pk=locked.provider_id).paused_reason
