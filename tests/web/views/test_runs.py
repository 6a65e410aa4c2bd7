"""Launch form, run page and actions of a run."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db.models import F
from django.test import Client
from playwright.sync_api import Page
from pytest_django.fixtures import Settings

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.lab.models import DecisionRecord, Model, Provider, Run, SamplingProfile, Schedule

pytestmark = pytest.mark.django_db


def make_local_model() -> Model:
    SamplingProfile.objects.get_or_create(name="default")
    return make_model("persona-a", provider=make_provider("Personas", kind=Provider.Kind.SIMULATED))


def build_form(model: Model, **changes: Any) -> dict[str, Any]:
    form: dict[str, Any] = {
        "models": model.pk,
        "scenarios": "happy_path",
        "profiles": "default",
        "strategies": "production",
    }
    form |= {"methods": "native", "trials": "3", "instance_kind": "parity"}
    return form | {"tool_use_mode": "enforced", "tool_failure_policy": "fatal"} | changes


def test_launch_form_starts_run_and_redirects_to_it(owner_client: Client) -> None:
    response = owner_client.post("/runs/new/", build_form(make_local_model()))
    run = Run.objects.get()
    assert response.headers["location"] == f"/runs/{run.pk}/"
    assert run.trials.count() == 3


def test_launch_form_estimate_follows_form_and_writes_nothing(owner_client: Client) -> None:
    response = owner_client.get("/runs/new/", build_form(make_local_model()), headers={"HX-Request": "true"})
    text = read_html(response)
    assert "Start 3 trials" in text
    assert "<html" not in text
    assert not Run.objects.exists()


def test_launch_form_of_partial_address_has_defaults(owner_client: Client) -> None:
    text = read_html(owner_client.get(f"/runs/new/?models={make_local_model().pk}&scenarios=happy_path&trials=3"))
    assert "This field is required" not in text
    assert "Start 3 trials" in text


def test_launch_form_requires_confirmation_of_paid_requests(owner_client: Client) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    model = make_model()
    response = owner_client.post("/runs/new/", build_form(model, trials="200"))
    assert "may cost money" in read_html(response)
    assert not Run.objects.exists()
    assert response.context["plan"].max_paid_requests == read_confirmed_requests(response)


def test_launch_form_requires_confirmation_again_for_more_requests(owner_client: Client) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    model = make_model()
    confirmed = read_confirmed_requests(owner_client.post("/runs/new/", build_form(model, trials="200")))
    Provider.objects.update(max_attempts=F("max_attempts") + 1)
    response = owner_client.post("/runs/new/", build_form(model, trials="200", agreed=str(confirmed)))
    assert read_confirmed_requests(response) > confirmed
    assert not Run.objects.exists()
    owner_client.post("/runs/new/", build_form(model, trials="200", agreed=str(read_confirmed_requests(response))))
    assert Run.objects.count() == 1


def read_confirmed_requests(response: Any) -> int:
    shown = re.search(r'name="agreed" value="(\d+)"', read_html(response))
    assert shown is not None
    return int(shown[1])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"models": "999999"}, "not one of the available choices"),
        ({"models": "x\0y"}, "not one of the available choices"),
        ({"trials": "0"}, "greater than or equal to 1"),
        ({"trials": "many"}, "Enter a whole number"),
        ({"overrides": "{"}, "This is not JSON: "),
        ({"overrides": "[]"}, "JSON object"),
        ({"overrides": '{"max_turn": 3}'}, "max_turn"),
        ({"scenarios": []}, "Choose at least one scenario"),
    ],
)
def test_launch_form_explains_bad_input_and_starts_nothing(
    owner_client: Client, changes: dict[str, object], sentence: str
) -> None:
    response = owner_client.post("/runs/new/", build_form(make_local_model(), **changes))
    assert response.status_code == 200
    assert sentence in read_html(response)
    assert not Run.objects.exists()


def test_run_page_polls_only_running_run(owner_client: Client) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 1})
    assert "hx-trigger" not in read_html(owner_client.get(f"/runs/{run.pk}/"))
    Run.objects.update(state=Run.State.RUNNING)
    fragment = read_html(owner_client.get(f"/runs/{run.pk}/", headers={"HX-Request": "true"}))
    assert 'hx-trigger="every 1s"' in fragment
    assert "<html" not in fragment


def test_run_actions_say_why_they_are_not_possible(owner_client: Client) -> None:
    run = make_run()
    response = owner_client.post(f"/runs/{run.pk}/act/", {"action": "cancel"}, follow=True)
    assert "nothing to cancel" in read_html(response)
    response = owner_client.post(f"/runs/{run.pk}/act/", {"action": "explode"}, follow=True)
    assert "not known" in read_html(response)


def test_run_action_add_confirms_paid_requests(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    action_fields = {"action": "add", "cell": str(cell.pk), "count": "900"}
    confirmation = read_html(owner_client.post(f"/runs/{cell.run_id}/act/", action_fields))
    assert "may cost money" in confirmation
    assert not cell.trials.exists()
    hidden = dict(re.findall(r'type="hidden" name="(action|cell|count)" value="(\w+)"', confirmation))
    shown = re.search(r'name="agreed" value="(\d+)"', confirmation)
    assert shown is not None
    answer = owner_client.post(f"/runs/{cell.run_id}/act/", hidden | {"agreed": shown[1]}, follow=True)
    assert "900 trials added" in read_html(answer)
    assert cell.trials.count() == 900


def test_run_action_add_refuses_cell_of_other_run(owner_client: Client) -> None:
    other = make_cell(make_config(make_run()))
    run = make_run()
    action_fields = {"action": "add", "cell": str(other.pk), "count": "1"}
    answer = owner_client.post(f"/runs/{run.pk}/act/", action_fields, follow=True)
    assert "has no such cell" in read_html(answer)
    assert not other.trials.exists()


@pytest.mark.parametrize("cap", ["-1", "1e9", "x", "²"])
def test_run_action_raise_refuses_invalid_limit(owner_client: Client, cap: str) -> None:
    run = make_run(state=Run.State.PAUSED, request_cap=5, requests_reserved=5)
    response = owner_client.post(f"/runs/{run.pk}/act/", {"action": "raise", "request_cap": cap}, follow=True)
    assert "not a whole number" in read_html(response)
    assert Run.objects.get().request_cap == 5


def test_run_page_of_simulated_run_is_labelled(owner_client: Client) -> None:
    run = make_run(simulated=True)
    assert "Simulated." in read_html(owner_client.get(f"/runs/{run.pk}/"))


def test_pages_and_files_with_simulated_figures_are_labelled(owner_client: Client) -> None:
    """The name of the provider does not show that its models are simulated."""
    host = make_provider("Cheap host", kind=Provider.Kind.SIMULATED, service="simulated", base_url="")
    runs = [make_run(simulated=True) for _ in range(2)]
    for run in runs:
        trials = make_trials(make_cell(make_config(run, make_model("tagged", provider=host))), **{"pass": 5, "fail": 5})
    owner_client.post("/decide/records/?scope=demo", {"scope": "demo", "want": "fastest"})
    one, two, record = runs[0].pk, runs[1].pk, DecisionRecord.objects.get().pk
    for address in (
        f"/runs/{one}/metrics/", f"/runs/{one}/judgements/", f"/runs/{one}/trials.csv", f"/matrix/?run={one}",
        f"/matrix/export.csv?run={one}", f"/failures/?run={one}", f"/latency/?run={one}", f"/trials/?run={one}",
        f"/trials/{trials[0].pk}/", f"/what-if/?run={one}", f"/compare/?a_run={one}&b_run={two}",
        f"/compare/export.csv?a_run={one}&b_run={two}", "/decide/?scope=demo", f"/decide/records/{record}/",
        f"/decide/records/{record}/record.csv",
    ):  # fmt: skip
        text = owner_client.get(address).getvalue().decode()
        assert "simulated" in text.partition("<main")[2].lower() or "simulated" in text.partition("\n")[0], address


def test_run_page_of_unknown_run_is_404(owner_client: Client) -> None:
    assert owner_client.get("/runs/424242/").status_code == 404


@pytest.mark.parametrize("path", ["/runs/", "/demo/", "/runs/new/", "/trials/", "/latency/"])
def test_pages_without_rows_answer(owner_client: Client, path: str) -> None:
    assert owner_client.get(path).status_code == 200


@pytest.mark.parametrize("part", [True, False])
def test_polled_page_varies_by_htmx_header(owner_client: Client, part: bool) -> None:
    cell = make_cell(make_config(make_run()))
    trial = make_trials(cell, **{"fail": 1})[0]
    for path in (f"/runs/{cell.run_id}/", "/runs/new/", f"/trials/{trial.pk}/"):
        response = owner_client.get(path, headers={"HX-Request": "true"} if part else {})
        assert "HX-Request" in response.headers["vary"]
        assert "no-cache" in response.headers["cache-control"]
        assert ("<html" in read_html(response)) is not part


def test_run_page_restored_from_history_is_whole(owner_client: Client) -> None:
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in read_html(owner_client.get(f"/runs/{make_run().pk}/", headers=headers))


def test_run_page_delete_button_is_behind_disclosure(owner_client: Client) -> None:
    text = read_html(owner_client.get(f"/runs/{make_run().pk}/"))
    before, button = text.split('value="delete"')[:2]
    assert before.rindex("<details>") > before.rfind("</details>")
    assert "Delete run" in button


def test_run_page_live_buttons_have_ids_for_keyboard_focus(owner_client: Client) -> None:
    run = make_run(state=Run.State.PAUSED, stopped_reason="cap", request_cap=1)
    make_trials(make_cell(make_config(run)), **{"infra": 1})
    for state in (Run.State.RUNNING, Run.State.PAUSED):
        Run.objects.update(state=state)
        live = read_html(owner_client.get(f"/runs/{run.pk}/", headers={"HX-Request": "true"}))
        buttons = re.findall(r"<button[^>]*>", live)
        assert buttons
        assert all(" id=" in button for button in buttons)


def test_launch_form_shows_code_in_purpose_of_scenario_as_code(owner_client: Client) -> None:
    make_local_model()
    text = read_html(owner_client.get("/runs/new/"))
    assert "wrong type for <code>ops</code> is refused" in re.sub(r"\s*>", ">", text)
    assert "`ops`" not in text


def test_launch_form_set_chooses_scenarios_and_keeps_form(owner_client: Client) -> None:
    text = read_html(owner_client.get("/runs/new/", build_form(make_local_model(), set="simple", scenarios="weather")))
    chosen = re.findall(r'name="scenarios" value="(\w+)" checked', text)
    assert chosen == ["happy_path", "chat_only"]
    assert "Start 6 trials" in text


def test_launch_form_model_filter_keeps_chosen_models(owner_client: Client) -> None:
    chosen = make_local_model()
    for name in ("persona-b", "other"):
        make_model(name, provider=chosen.provider)
    text = read_html(owner_client.get("/runs/new/", build_form(chosen, find="other")))
    assert ("persona-a" in text, "persona-b" in text, ">other<" in text) == (True, False, True)


def test_launch_form_collapses_unavailable_models_with_reason(owner_client: Client) -> None:
    host = make_provider("Host", kind=Provider.Kind.SIMULATED, service="simulated", base_url="")
    make_local_model()
    away = make_model("away", provider=host)
    usable = make_model("vendor/usable")
    text = read_html(owner_client.get("/runs/new/"))
    listed, collapsed = text.split("Cannot be used now: 1 provider")
    assert f'value="{usable.pk}"' in listed
    assert f'value="{away.pk}"' in collapsed
    assert "not running" in collapsed
    assert 'class="unavailable" open' in read_html(owner_client.get("/runs/new/", build_form(away)))


def test_launch_form_lists_chosen_models_first_and_updates_them(owner_client: Client) -> None:
    model = make_local_model()
    whole = read_html(owner_client.get("/runs/new/", build_form(model)))
    assert f'for="model-{model.pk}"' in whole
    assert "hx-swap-oob" not in whole
    part = read_html(owner_client.get("/runs/new/", build_form(model), headers={"HX-Request": "true"}))
    assert f'for="model-{model.pk}"' in part.partition("hx-swap-oob")[2]


def test_launch_form_marks_pack_of_exactly_chosen_scenarios(owner_client: Client) -> None:
    model = make_local_model()
    marked = r'value="(\w+)" title="[^"]*" aria-current="true"'
    assert re.findall(marked, read_html(owner_client.get("/runs/new/", build_form(model, set="simple")))) == ["simple"]
    text = read_html(owner_client.get("/runs/new/", build_form(model)))
    assert re.findall(marked, text) == []
    assert text.index("Of the case study") < text.index('value="all"') < text.index("Packs") < text.index('="recovery"')


def test_launch_form_try_one_starts_one_trial_per_cell(owner_client: Client) -> None:
    plan = build_form(
        make_local_model(), scenarios=["happy_path", "weather"], trials="40", until="threshold", until_target="70"
    )
    owner_client.post("/runs/new/?start=one", plan)
    run = Run.objects.get()
    assert (run.trial_count, run.trials.count(), run.until) == (2, 2, {})


def test_launch_form_try_one_confirms_paid_requests(owner_client: Client, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 1
    SamplingProfile.objects.get_or_create(name="default")
    plan = build_form(make_model(), trials="40")
    response = owner_client.post("/runs/new/?start=one", plan)
    assert "Nothing was sent yet." in read_html(response)
    assert response.context["plan"].trials == 40
    owner_client.post("/runs/new/?start=one", plan | {"agreed": read_confirmed_requests(response)})
    assert Run.objects.get().trials.count() == 1


def test_schedule_form_saves_plan_without_run(owner_client: Client) -> None:
    plan = urlencode(build_form(make_local_model(), title="Core set"))
    form = read_html(owner_client.get(f"/schedules/new/?{plan}"))
    assert "1 configuration, 1 cell, 3 trials" in form
    assert 'value="Core set"' in form
    times = {"rhythm": "nightly", "hour_utc": "2", "requests_per_run": "100", "requests_per_month": "3000"}
    owner_client.post(f"/schedules/new/?{plan}", {"name": "Core", **times})
    assert Schedule.objects.get().request["trials"] == 3
    assert not Run.objects.exists()


def test_schedule_form_of_invalid_plan_redirects_to_launch_form(owner_client: Client) -> None:
    answer = owner_client.get("/schedules/new/", build_form(make_local_model(), trials="many"), follow=True)
    assert answer.redirect_chain[0][0].startswith("/runs/new/?")
    assert "Enter a whole number" in read_html(answer)


def test_launch_form_estimates_no_cost_for_private_network(owner_client: Client) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    own_model = make_model("own", provider=make_provider("Own", base_url="http://192.168.1.5:8000"))
    text = read_html(
        owner_client.get("/runs/new/", build_form(own_model, trials="2000"), headers={"HX-Request": "true"})
    )
    assert "may cost money" not in text
    assert "$0.00" in text


def test_launch_form_estimate_uses_cost_reported_by_own_server(owner_client: Client) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    own_model = make_model("own", provider=make_provider("Own", base_url="http://192.168.1.5:8000"))
    cell = make_cell(make_config(make_run(), own_model))
    for _ in range(20):
        make_trial(cell, cost=0.01)
    recompute_stale_cells()
    text = read_html(owner_client.get("/runs/new/", build_form(own_model, trials="20"), headers={"HX-Request": "true"}))
    assert "$0.00" not in text
    assert "$0.2" in text


def test_launch_form_stream_both_makes_two_configurations(owner_client: Client) -> None:
    owner_client.post("/runs/new/", build_form(make_local_model(), stream="both"))
    assert [config.stream for config in Run.objects.get().configs.all()] == [False, True]


def test_run_page_of_finished_run_shows_end_without_pace(owner_client: Client) -> None:
    run = make_run(title="", finished_at="2026-03-04T05:06Z")
    Run.objects.update(created_at="2026-03-04T05:00Z")
    make_trials(make_cell(make_config(run)), **{"pass": 3})
    text = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert "Finished</span> 4 Mar 2026, 05:06 · started 4 Mar 2026, 05:00" in text
    assert "6 min" in text
    assert "a minute" not in text


def test_run_page_of_paused_run_shows_start_without_pace(owner_client: Client) -> None:
    run = make_run(state=Run.State.PAUSED)
    make_trials(make_cell(make_config(run)), **{"pass": 3, "queued": 2})
    text = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert "Paused</span> · started" in text
    assert "Time left" not in text


def test_launch_form_address_has_no_token_and_no_empty_fields(owner_client: Client) -> None:
    model = make_local_model()
    typed = build_form(model, title="", token_cap="", until="", csrfmiddlewaretoken="t" * 64)

    answer = owner_client.get("/runs/new/", typed)

    short = answer.headers["Location"]
    assert "csrfmiddlewaretoken" not in short
    assert not re.search(r"=(&|$)", short)
    assert "Start 3 trials" in read_html(owner_client.get(short))


def test_launch_form_in_browser_sends_no_token_in_addresses(browser_page: Page, transactional_db: None) -> None:
    model = make_local_model()
    requested_urls: list[str] = []
    browser_page.on("request", lambda request: requested_urls.append(request.url))
    browser_page.goto("/runs/new/")
    browser_page.locator("fieldset > details:not([open]) > summary").first.click()
    browser_page.locator(f'input[name="models"][value="{model.pk}"]').check()
    browser_page.locator("button[name=set]").first.click()
    browser_page.get_by_label("Trials for each scenario").fill("4")
    browser_page.get_by_label("Trials for each scenario").press("Enter")
    browser_page.get_by_label("Trials for each scenario").fill("5")
    browser_page.get_by_role("button", name="Start").focus()
    browser_page.get_by_role("button", name="Update plan").click()

    assert "trials=5" in browser_page.url
    assert not re.search(r"=(&|$)", browser_page.url)
    assert any("trials=4" in url for url in requested_urls)
    assert [url for url in requested_urls if "csrfmiddlewaretoken" in url] == []

    with browser_page.expect_navigation():
        browser_page.get_by_role("button", name="Start").click()
    assert "/runs/" in browser_page.url
    assert browser_page.url.endswith(f"/runs/{Run.objects.get().pk}/")
