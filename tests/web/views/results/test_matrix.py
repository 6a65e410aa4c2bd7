"""The matrix page: plain links and forms, state in the address, exports of what is shown."""

import json
import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab import builtin_data
from toolbench.lab.models import Provider, RunConfig
from toolbench.lab.worker.health import record_heartbeat

pytestmark = pytest.mark.django_db


def measured(**run: object) -> RunConfig:
    config = make_config(make_run(**run))
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 6, "fail": 3, "infra": 1})
    return config


def test_every_metric_and_target_can_be_asked_for_by_its_address(owner_client: Client) -> None:
    measured()
    metrics = ("given", "delivered", "first", "parity", "control", "structured", "schema", "parse")
    for metric in (*metrics, "p50", "p95", "tokens", "cost"):
        response = owner_client.get("/matrix/", {"metric": metric, "target": "80"})
        assert response.status_code == 200, metric


def test_a_row_opens_by_a_link_and_the_address_holds_it(owner_client: Client) -> None:
    config = measured()
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert f'href="?scope=real&amp;cell={config.pk}&amp;view=bars#row-{config.pk}"' in text
    assert f'href="?scope=real&amp;cell={config.pk}#row-{config.pk}"' in read_html(owner_client.get("/matrix/"))
    opened = read_html(owner_client.get(f"/matrix/?scope=real&cell={config.pk}"))
    assert "Trials behind it, failed first" in opened
    assert "data-failed" in opened


def test_without_runs_of_ones_own_the_published_figures_are_shown(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    assert "Published 2026-02, not measured here." in read_html(owner_client.get("/matrix/"))
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert "1,002/1,160" in text
    assert "1,002/1,120" in text
    assert "5 not published" in text
    assert "Timeouts were the dominant failure mode here (p95 ~125s)." in text


def test_every_published_row_opens(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    for position in range(29):
        text = read_html(owner_client.get(f"/matrix/?scope=published&cell=p{position}"))
        assert "By Toolbench’s rules" in text


def test_simulated_rows_are_labelled_and_stay_in_their_scope(owner_client: Client) -> None:
    measured(simulated=True)
    assert "vendor/model-a" not in read_html(owner_client.get("/matrix/?scope=real"))
    demo = read_html(owner_client.get("/matrix/?scope=demo"))
    assert "Simulated models" in demo
    assert "· simulated" in demo
    assert "· simulated" in read_html(owner_client.get("/matrix/?scope=demo&view=bars"))


@pytest.mark.parametrize(
    "query", ["metric=best", "target=x", "run=%00", "scope=all", "cell=%22%3E%3Cscript%3E", "q=%00"]
)
def test_no_address_breaks_the_page(owner_client: Client, query: str) -> None:
    measured()
    response = owner_client.get(f"/matrix/?{query}")
    assert response.status_code == 200
    assert b"<script>" not in response.content


@pytest.mark.parametrize(
    ("kind", "start"), [("csv", "model,sampling_profile,tool_ok"), ("md", "# Matrix"), ("json", "{")]
)
def test_what_is_shown_can_be_taken_away(owner_client: Client, kind: str, start: str) -> None:
    measured()
    response = owner_client.get(f"/matrix/export.{kind}?scope=real")
    assert read_html(response).startswith(start)
    assert response.headers["Content-Disposition"] == f'attachment; filename="toolbench-matrix-real.{kind}"'


def test_the_filter_goes_for_exports_too(owner_client: Client) -> None:
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 1})
    found = json.loads(owner_client.get("/matrix/export.json?scope=real&q=alp").content)
    assert [row["model"] for row in found["rows"]] == ["alpha"]


@pytest.mark.django_db(transaction=True)
def test_the_matrix_is_walked_by_keys(browser_page: Page) -> None:
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 2, "fail": 1})
    browser_page.goto("/matrix/?view=bars")
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("tr.panel h2")).to_contain_text("beta")
    browser_page.wait_for_load_state()  # before it no key is heard
    browser_page.keyboard.press("Escape")
    expect(browser_page.locator("tr.panel")).to_have_count(0)
    browser_page.wait_for_load_state()
    browser_page.keyboard.press("/")
    browser_page.keyboard.type("alpha")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("a.cell")).to_have_count(1)
    browser_page.keyboard.press("Tab")
    browser_page.locator("h1").click()
    browser_page.keyboard.press("?")
    expect(browser_page.locator("#keys")).to_be_visible()


def test_columns_and_density_are_held_by_the_address(owner_client: Client) -> None:
    measured()
    text = read_html(owner_client.get("/matrix/?grid_column=p99&grid_column=schema&density=compact&target=80"))
    heads = re.findall(r'id="sort-([a-z0-9_]+)"', text)
    assert heads[-2:] == ["schema", "p99"]
    assert 'class="grid compact' in text
    assert 'name="target" value="80"' in text, "the form of the columns carries the rest of the address"
    kept = "grid_column=p99%2Cschema&amp;density=compact"
    assert 'href="/trials/?grid_column=p99,schema&amp;density=compact"' in text
    assert f'href="?scope=real&amp;target=80&amp;sort=p99&amp;{kept}"' in text
    assert owner_client.get("/matrix/?grid_column=%00,nonsense&density=huge").status_code == 200


def test_published_snapshot_is_a_grid_that_names_what_is_missing(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/matrix/?scope=published"))
    assert text.count('title="not published"') > 5
    assert "Published 2026-02, not measured here" in text
    assert "Scenario × strategy" not in text
    for view in ("profile", "strategy"):
        assert owner_client.get(f"/matrix/?scope=published&view={view}&sort=-overall").status_code == 200
    assert "deepseek" not in read_html(owner_client.get("/matrix/?scope=published&q=glm"))


@pytest.mark.django_db(transaction=True)
def test_card_of_a_cell_opens_on_focus_and_pointer(browser_page: Page) -> None:
    config = measured()
    requests: list[str] = []
    browser_page.goto(f"/runs/{config.run_id}/")
    browser_page.wait_for_load_state("networkidle")
    browser_page.on("request", lambda request: requests.append(request.url))
    browser_page.locator("#cell-1-1").hover()
    card = browser_page.get_by_role("tooltip")
    expect(card).to_contain_text("9 passed · 1 failed · 0 infrastructure")
    assert requests == []
    browser_page.locator("#cell-1-1").focus()
    browser_page.keyboard.press("ArrowRight")
    expect(card).to_contain_text("6 passed · 3 failed · 1 infrastructure")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("#panel")).to_contain_text("long arguments guard")
    browser_page.keyboard.press("Escape")
    expect(browser_page.locator("#panel")).to_be_hidden()


@pytest.mark.django_db(transaction=True)
def test_toolbar_is_one_menu_on_a_phone(browser_page: Page) -> None:
    measured()
    browser_page.set_viewport_size({"width": 390, "height": 844})
    browser_page.goto("/matrix/")
    form = browser_page.locator("#filter")
    expect(form).to_be_hidden()
    browser_page.get_by_role("button", name="View").click()
    form.get_by_label("Judge against").select_option("80")
    form.get_by_role("button", name="Apply").last.click()
    expect(browser_page).to_have_url(re.compile("target=80"))


PAGES = (
    "/",
    "/matrix/",
    "/matrix/?scope=published",
    "/matrix/?density=compact",
    "/trials/",
    "/matrix/?view=profile",
    "/matrix/?view=strategy",
    "/matrix/?scope=published&cell=p4",
    "/providers/",
    "/providers/new/",
    "/models/",
    "/profiles/",
    "/presets/",
    "/scenarios/",
    "/scenarios/happy_path/",
    "/policy/",
    "/health/",
    "/demo/personas/",
)

TOO_WIDE = """theme => {
  document.documentElement.dataset.theme = theme;
  return document.documentElement.scrollWidth - window.innerWidth;
}"""


@pytest.mark.django_db(transaction=True)
def test_no_page_is_wider_than_a_phone_in_either_theme(browser_page: Page) -> None:
    builtin_data.load_builtin_data()
    config = measured()
    record_heartbeat("worker")
    providers = [f"/providers/{pk}/" for pk in Provider.objects.values_list("pk", flat=True)]
    browser_page.set_viewport_size({"width": 360, "height": 780})
    for path in (*PAGES, *providers, f"/matrix/?cell={config.pk}"):
        browser_page.goto(path)
        for theme in ("light", "dark"):
            assert browser_page.evaluate(TOO_WIDE, theme) <= 0, (path, theme)


def test_page_counts_the_rows_that_are_ranked(owner_client: Client) -> None:
    """The third row has an earlier version of its scenario."""
    for name, version in (("a", 2), ("b", 2), ("c", 1)):
        cell = make_cell(make_config(make_run(), make_model(name)), scenario_version=version)
        make_trials(cell, **{"pass": 9, "fail": 1})
    assert "1 other row overlaps with the best" in read_html(owner_client.get("/matrix/"))
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert "2 rows are compared: confirm the best one on new trials." in text
    assert "no clear winner: 1 other row overlaps with the best" in text
    assert text.count("scenario version 1 · not ranked") == 1
    assert "Not ranked: 1 row with happy_path version 1" in text
