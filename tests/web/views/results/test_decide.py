"""Decide page: the rule of the address, the answer with its reasons, and missing trials."""

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.lab.metrics.cells import recompute, recompute_immediately
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Cell, Provider, Run, RunConfig, SamplingProfile, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db


def make_measured_config(
    name: str, passed: int, *, lost: int = 0, first_ms: float = 1000.0, **run: object
) -> RunConfig:
    config = make_config(make_run(**run), make_model(name))
    cell = make_cell(config)
    for number in range(passed):
        make_trial(cell, duration_ms=first_ms + number)
    for _ in range(lost):
        make_trial(cell, "infra", failure_class="rate_limited")
    recompute_stale_cells()
    return config


def read_hidden_value(text: str, name: str) -> str:
    return text.partition(f'name="{name}" value="')[2].partition('"')[0]


def test_decide_page_refuses_fast_configuration_that_loses_trials(owner_client: Client) -> None:
    make_measured_config("vendor/fast", 64, lost=12, first_ms=100.0)
    make_measured_config("vendor/steady", 76)
    text = read_html(owner_client.get("/decide/?want=fastest"))
    assert "Only Example · vendor/steady · default · production · native qualifies." in text
    assert "It has too many trials without an answer: 12 of 76 (rate_limited × 12)." in text
    assert 'data-reason="delivery"' in text
    steady, fast = text.split("<tbody>")[1].split("</tr>")[:2]
    assert "vendor/steady" in steady
    assert "on the Pareto front" in steady
    assert "vendor/fast" in fast
    assert "on the Pareto front" not in fast
    assert "1 qualified" in text
    assert "1 refused" in text


def test_decide_page_offers_no_promotion_without_a_model(owner_client: Client) -> None:
    make_measured_config("vendor/steady", 76)
    refresh_pools()  # the decision over pooled runs is cached
    text = read_html(owner_client.get("/decide/"))
    assert ("Promote to an alias" in text, "promote to an alias" in text) == (True, True)
    RunConfig.objects.update(model=None)
    assert "romote to an alias" not in read_html(owner_client.get("/decide/"))


def test_decide_page_says_why_there_is_no_chart(owner_client: Client) -> None:
    config = make_measured_config("vendor/a", 1)
    Cell.objects.update(saturated=1)
    text = read_html(owner_client.get("/decide/"))
    assert text.count("<svg") == 2
    assert 'class="open-bound"' in text
    assert "open with 1 answer:" in text
    assert f">run {config.run_id} · settings" in text
    assert "trials measured while this machine was overloaded: 1" in text
    RunConfig.objects.update(provider_kind="local")
    assert "No chart: p95 is not used because local models share this machine" in read_html(
        owner_client.get("/decide/")
    )
    Trial.objects.update(outcome="infra")
    recompute_immediately(Cell.objects.values_list("pk", flat=True))
    RunConfig.objects.update(provider_kind="openai")
    assert "No chart: no configuration has an answer with a measured time" in read_html(owner_client.get("/decide/"))


@pytest.mark.parametrize(
    "query",
    ["success=x", "within=-1", "run=%00", "scope=all", "want=best", "q=%00", "group=zz", "within=none", "run=7"],
)
def test_decide_page_answers_bad_query(owner_client: Client, query: str) -> None:
    make_measured_config("vendor/a", 3)
    assert owner_client.get(f"/decide/?{query}").status_code == 200


@pytest.mark.parametrize(
    ("query", "problem", "field"),
    [
        (
            "within=abc",
            "“abc” is not a number of seconds from 0.001 to 86,400: the answer below uses 20 s for p95.",
            'value="abc"',
        ),
        ("within=-2", "“-2” is not a number of seconds from 0.001 to 86,400", 'value="-2"'),
        ("within=90000", "“90000” is not a number of seconds from 0.001 to 86,400", 'value="90000"'),
        ("success=100", "“100” is not a percentage from 1 to 99.9: the answer below uses 90 %.", 'value="100"'),
    ],
)
def test_decide_page_names_limit_that_it_cannot_read(
    owner_client: Client, query: str, problem: str, field: str
) -> None:
    make_measured_config("vendor/a", 3)
    text = " ".join(read_html(owner_client.get(f"/decide/?{query}")).split())
    assert problem in text
    assert f'{field} aria-invalid="true"' in text
    assert "Ignored filters" not in text
    assert 'aria-invalid="true"' not in read_html(owner_client.get("/decide/?within=none&success=95"))


def test_decide_page_names_ignored_filters_by_their_labels(owner_client: Client) -> None:
    text = read_html(owner_client.get("/decide/?scope=imported&want=best&after=soon"))
    assert "Ignored filters: Scope, Goal, Time (from)." in text


def test_decide_page_without_costs_begins_with_most_reliable(owner_client: Client) -> None:
    make_measured_config("vendor/a", 3)
    text = " ".join(read_html(owner_client.get("/decide/")).split())
    assert '<option value="reliable" selected>' in text


def test_decide_page_shows_simulated_configurations_only_in_demo(owner_client: Client) -> None:
    make_measured_config("vendor/sim", 3, simulated=True)
    assert "vendor/sim" not in read_html(owner_client.get("/decide/"))
    demo = read_html(owner_client.get("/decide/?scope=demo"))
    assert "Simulated models: this says nothing about real models." in demo
    assert "vendor/sim" in demo


@pytest.mark.django_db(transaction=True)
def test_decide_page_keeps_scope_and_ticked_runs_at_enter(browser_page: Page) -> None:
    run = make_measured_config("vendor/sim", 3, simulated=True).run
    browser_page.goto("/decide/?scope=demo")
    browser_page.get_by_label("and a p95 of at most").press("Enter")
    browser_page.wait_for_url("**within=**")
    expect(browser_page.locator("main")).to_contain_text("vendor/sim")
    browser_page.locator("summary", has_text="Runs").click()
    browser_page.get_by_role("checkbox", name=f"{run.pk} ·").check()
    browser_page.get_by_label("and a p95 of at most").press("Enter")
    browser_page.wait_for_url(f"**run={run.pk}**")
    expect(browser_page.locator(".warn")).to_have_count(0)


def test_decide_page_plans_missing_trials_once(owner_client: Client) -> None:
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    run = launch(RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=40, instance_kind="drawn"))
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=1000)
    recompute([cell.pk for cell in run.cells.all()])
    text = read_html(owner_client.get("/decide/?scope=demo&want=fastest"))
    assert "it closes with 32 more trials" in text
    assert "passes without a failure" not in text
    assert "Start 32 more trials" in text
    form = {
        "scope": "demo",
        "want": "fastest",
        "success": "90",
        "within": "20",
        "shown": read_hidden_value(text, "shown"),
    }
    planned = owner_client.post("/decide/", form)
    newest = Run.objects.latest("pk")
    assert planned["Location"] == f"/runs/{newest.pk}/"
    assert newest.trials.count() == 32
    Run.objects.filter(pk=newest.pk).update(state=Run.State.FINISHED)
    assert f"/decide/?scope=runs&amp;run={run.pk}" in read_html(owner_client.get(f"/runs/{newest.pk}/"))
    Run.objects.filter(pk=newest.pk).update(state=Run.State.RUNNING)
    shown = read_html(owner_client.get("/decide/?scope=demo&want=fastest"))
    assert f'href="/runs/{newest.pk}/">Run {newest.pk}</a>' in shown
    assert "Start 32 more trials" not in shown
    again = read_html(owner_client.post("/decide/", form, follow=True))
    assert "No trials were launched. No trials are missing now" in again
    assert Run.objects.latest("pk") == newest


def test_decide_page_of_only_candidate_names_planned_trials(owner_client: Client) -> None:
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    run = launch(RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=40, instance_kind="drawn"))
    for _ in range(2):
        newest = Run.objects.latest("pk")
        newest.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=1000)
        Run.objects.filter(pk=newest.pk).update(state=Run.State.FINISHED)
        recompute([cell.pk for cell in newest.cells.all()])
        refresh_pools()  # the decision over pooled runs is cached
        text = read_html(owner_client.get("/decide/?scope=demo&want=fastest"))
        form = {"scope": "demo", "want": "fastest", "shown": read_hidden_value(text, "shown")}
        owner_client.post("/decide/", form)
    assert newest != run
    assert "Some of the winner's trials were planned after results were seen." in text
    assert "Best of 1" not in text


def test_decide_page_confirms_paid_missing_trials(owner_client: Client) -> None:
    model = make_model("gpt-4o", provider=make_provider("OpenAI", template="openai"))
    SamplingProfile.objects.create(name="default")
    request = RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=40, instance_kind="drawn")
    run = launch(request, confirmed_requests=1_000_000)
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=1000)
    recompute([cell.pk for cell in run.cells.all()])
    form = {"want": "fastest", "success": "90", "within": "20"}
    form["shown"] = read_hidden_value(read_html(owner_client.get("/decide/?want=fastest")), "shown")
    page = read_html(owner_client.post("/decide/", form))
    assert "Confirm paid requests" in page
    assert Run.objects.count() == 1
    assert read_hidden_value(page, "shown") == form["shown"]
    agreed = page.partition('name="agreed" value="')[2].partition('"')[0]
    assert owner_client.post("/decide/", {**form, "agreed": agreed})["Location"].startswith("/runs/")


def test_decide_page_for_cheapest_without_price_says_where_to_enter_it(owner_client: Client) -> None:
    make_measured_config("vendor/a", 76)
    text = read_html(owner_client.get("/decide/?want=cheapest"))
    assert "No price is known for the measured configuration" in text
    assert "toolbench/evals/data/prices.json" in text
    assert "Only Example" in read_html(owner_client.get("/decide/?want=reliable"))
