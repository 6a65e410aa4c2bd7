"""Matrix page: rows, scopes, keys, columns and exports; the address holds the state."""

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


def make_measured_config(**run: object) -> RunConfig:
    config = make_config(make_run(**run))
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    make_trials(make_cell(config, "long_arguments_guard"), **{"pass": 6, "fail": 3, "infra": 1})
    return config


def test_matrix_page_answers_every_metric_and_target(owner_client: Client) -> None:
    make_measured_config()
    metrics = ("given", "delivered", "first", "parity", "control", "structured", "schema", "parse")
    for metric in (*metrics, "p50", "p95", "tokens", "cost"):
        response = owner_client.get("/matrix/", {"metric": metric, "target": "80"})
        assert response.status_code == 200, metric


def test_matrix_page_opens_row_by_link(owner_client: Client) -> None:
    config = make_measured_config()
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert f'href="?scope=real&amp;cell={config.pk}&amp;view=bars#row-{config.pk}"' in text
    assert f'href="?scope=real&amp;cell={config.pk}#row-{config.pk}"' in read_html(owner_client.get("/matrix/"))
    opened = read_html(owner_client.get(f"/matrix/?scope=real&cell={config.pk}"))
    assert "Trials of the row, failed first" in opened
    assert "data-failed" in opened


@pytest.mark.parametrize(("view", "enter"), [("", "open the trials of the cell"), ("bars", "open the row: ")])
def test_matrix_page_lists_keys_of_its_view(owner_client: Client, view: str, enter: str) -> None:
    make_measured_config()
    text = read_html(owner_client.get("/matrix/", {"view": view}))
    assert enter in text
    assert "<kbd>f</kbd>" in text


@pytest.mark.parametrize("view", ["", "bars"])
def test_matrix_page_of_published_scope_lists_no_keys_for_trials(owner_client: Client, view: str) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/matrix/", {"scope": "published", "view": view}))
    assert 'id="keys"' in text
    assert "<kbd>f</kbd>" not in text


def test_matrix_page_says_why_it_has_no_totals(owner_client: Client) -> None:
    reason = "No totals: drawn instances and the published wording are different tasks."
    make_measured_config(instance_kind="parity")
    assert reason not in read_html(owner_client.get("/matrix/"))
    make_measured_config(instance_kind="drawn")
    assert reason in read_html(owner_client.get("/matrix/"))


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("scope=real&model=none", "No result matches this filter"),
        ("run=9999", "No result in these runs"),
        ("scope=imported", "No imported run yet"),
        ("scope=real&metric=delivered", "Nothing measured here yet"),
        ("scope=real&prompt=each", "Nothing measured here yet"),
        ("scope=real&prompt=1", "No result matches this filter"),
    ],
)
def test_matrix_page_without_rows_says_why(owner_client: Client, query: str, title: str) -> None:
    assert f">{title}</h2>" in read_html(owner_client.get(f"/matrix/?{query}"))


def test_matrix_page_calls_only_own_trials_measured_here(owner_client: Client) -> None:
    config = make_measured_config(imported=True)
    for view in ("", "&view=bars"):
        text = read_html(owner_client.get(f"/matrix/?scope=imported{view}"))
        assert ("imported trials," in " ".join(text.split()), "measured here" in text) == (True, False)
    named = " ".join(read_html(owner_client.get(f"/matrix/?run={config.run_id}")).split())
    assert f"trials in run {config.run_id}," in named


def test_matrix_page_without_own_runs_shows_published_figures(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    assert "Published 2026-02, not measured here." in read_html(owner_client.get("/matrix/"))
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert "1,002/1,160" in text
    assert "1,002/1,120" in text
    assert "5 not published" in text
    row_with_tools_off = text.partition("tools off: neither pass nor fail")[0].rpartition('id="row-')[2]
    assert "not applicable</span>" in row_with_tools_off
    assert "/40" not in row_with_tools_off
    assert "Timeouts were the dominant failure mode here (p95 ~125s)." in text


def test_matrix_page_opens_every_published_row(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    for position in range(29):
        text = read_html(owner_client.get(f"/matrix/?scope=published&cell=p{position}"))
        assert "By Toolbench's rules" in text


def test_matrix_page_shows_labelled_simulated_rows_only_in_demo(owner_client: Client) -> None:
    run_id = make_measured_config(simulated=True).run_id
    assert "vendor/model-a" not in read_html(owner_client.get("/matrix/?scope=real"))
    demo = read_html(owner_client.get("/matrix/?scope=demo"))
    assert "Simulated models" in demo
    assert "Every row is a simulated model" not in demo
    assert "Every row is a simulated model" in read_html(owner_client.get(f"/matrix/?run={run_id}"))
    assert "· simulated" in read_html(owner_client.get("/matrix/?scope=demo&view=bars"))


def test_matrix_page_marks_provider_with_simulated_row_after_real_one(owner_client: Client) -> None:
    runs = [make_run(simulated=simulated) for simulated in (False, True)]
    for run, name in zip(runs, ("a", "b"), strict=True):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 5})
    page = read_html(owner_client.get(f"/matrix/?run={runs[0].pk}&run={runs[1].pk}&view=bars"))
    assert page.index("· simulated") < page.index('id="row-')


@pytest.mark.parametrize(
    "query", ["metric=best", "target=x", "run=%00", "scope=all", "cell=%22%3E%3Cscript%3E", "q=%00"]
)
def test_matrix_page_answers_bad_query(owner_client: Client, query: str) -> None:
    make_measured_config()
    response = owner_client.get(f"/matrix/?{query}")
    assert response.status_code == 200
    assert b"<script>" not in response.content


@pytest.mark.parametrize(
    ("kind", "start"), [("csv", "model,sampling_profile,tool_ok"), ("md", "# Matrix"), ("json", "{")]
)
def test_matrix_export_downloads_file_of_each_kind(owner_client: Client, kind: str, start: str) -> None:
    make_measured_config()
    response = owner_client.get(f"/matrix/export.{kind}?scope=real")
    assert read_html(response).startswith(start)
    assert response.headers["Content-Disposition"] == f'attachment; filename="toolbench-matrix-real.{kind}"'


def test_matrix_export_applies_filter(owner_client: Client) -> None:
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 1})
    found = json.loads(owner_client.get("/matrix/export.json?scope=real&q=alp").content)
    assert [row["model"] for row in found["rows"]] == ["alpha"]


@pytest.mark.django_db(transaction=True)
def test_matrix_page_is_operated_by_keys(browser_page: Page) -> None:
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 2, "fail": 1})
    browser_page.goto("/matrix/?view=bars")
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("tr.panel h2")).to_contain_text("beta")
    browser_page.wait_for_load_state()  # keys work once the page has read its scripts
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


def test_matrix_page_takes_columns_and_density_from_address(owner_client: Client) -> None:
    make_measured_config()
    text = read_html(owner_client.get("/matrix/?grid_column=p99&grid_column=schema&density=compact&target=80"))
    heads = re.findall(r'id="sort-([a-z0-9_]+)"', text)
    assert heads[-2:] == ["schema", "p99"]
    assert 'class="grid compact' in text
    assert 'name="target" value="80"' in text, "the form of the columns keeps the other parameters"
    kept = "grid_column=p99%2Cschema&amp;density=compact"
    assert 'href="/trials/?grid_column=p99,schema&amp;density=compact"' in text
    assert f'href="?scope=real&amp;target=80&amp;sort=p99&amp;{kept}"' in text
    assert owner_client.get("/matrix/?grid_column=%00,nonsense&density=huge").status_code == 200


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"p50", "p95", "retries", "tokens", "cost"}),
        ("grid_column=p99", {"p99"}),
        ("scope=published", {"p95"}),
        ("scope=published&grid_column=p50,control", {"p50", "control"}),
    ],
)
def test_matrix_column_menu_ticks_shown_columns(owner_client: Client, query: str, names: set[str]) -> None:
    builtin_data.load_builtin_data()
    make_measured_config()
    text = read_html(owner_client.get(f"/matrix/?{query}"))
    boxes = re.findall(r'<input[^>]*type="checkbox"[^>]*name="grid_column"[^>]*>', text)
    values = {match[1]: "checked" in box for box in boxes if (match := re.search(r'value="([a-z0-9_]+)"', box))}
    assert {name for name, is_ticked in values.items() if is_ticked} == names


@pytest.mark.parametrize(
    ("scope", "label"),
    [
        ("real", "My runs"),
        ("demo", "Simulated"),
        ("imported", "Imported"),
        ("published", "Published"),
        ("runs&run=5,7", "Run 5, 7"),
        ("runs&run=1,2,3,4", "4 runs"),
    ],
)
def test_matrix_view_button_has_label_of_scope(owner_client: Client, scope: str, label: str) -> None:
    text = read_html(owner_client.get(f"/matrix/?scope={scope}&target=80"))
    button = re.search(r'<button class="btn view-open".*?</button>', text, re.DOTALL)
    assert button
    assert f"View <b>{label} · 80&nbsp;%</b>" in re.sub(r"\s+", " ", button[0])


def test_matrix_head_of_profile_keeps_its_underscores(owner_client: Client) -> None:
    config = make_config(make_run(), make_model("glm-4.7"), profile="glm_4_7_tool_calling")
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    text = read_html(owner_client.get("/matrix/?view=profile"))
    assert re.search(r'id="sort-tool_calling"[^>]*>tool_<wbr>calling<wbr></a>', text)
    assert text.count('data-card="Profile: glm_4_7_tool_calling ') == 2, "in the cards of the cell and of the row"


@pytest.mark.django_db(transaction=True)
def test_whole_profile_is_in_card_and_panel_without_mouse(browser_page: Page) -> None:
    config = make_config(make_run(), make_model("glm-4.7"), profile="glm_4_7_tool_calling")
    make_trials(make_cell(config), **{"pass": 9, "fail": 1})
    builtin_data.load_builtin_data()
    browser_page.goto("/matrix/?view=profile")
    browser_page.locator("h1").click()
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("ArrowRight")
    expect(browser_page.get_by_role("tooltip")).to_contain_text("Profile: glm_4_7_tool_calling")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("#panel")).to_contain_text("Profile: glm_4_7_tool_calling")
    browser_page.goto("/matrix/?scope=published&view=profile&q=glm-4.7")
    browser_page.locator("td.c > a").first.click()
    expect(browser_page.get_by_role("tooltip")).to_contain_text("Profile: ")


def test_matrix_page_of_published_scope_names_missing_figures(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/matrix/?scope=published"))
    assert text.count('title="not published"') > 5
    assert text.count('class="vh">not published<') == text.count('title="not published"')
    assert ">? not published<" in text
    assert "not all trials ended" not in text
    assert "29 configurations." in text
    assert "All rows, as published" in text
    assert "they count the trials with tools off as failures." in text
    assert "Published 2026-02, not measured here" in text
    assert "Scenario × strategy" not in text
    for view in ("profile", "strategy"):
        assert owner_client.get(f"/matrix/?scope=published&view={view}&sort=-overall").status_code == 200
    by_profile = read_html(owner_client.get("/matrix/?scope=published&view=profile"))
    assert "Configurations:" in by_profile
    assert "<b>1</b> with tools off" in by_profile
    assert "Configurations:" not in text
    assert "deepseek" not in read_html(owner_client.get("/matrix/?scope=published&q=glm"))


def test_matrix_page_marks_shown_view_if_published_scope_lacks_it(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/matrix/?scope=published&view=strategy"))
    assert re.search(r'aria-current="true"\s*>Model × scenario</a>', text)


@pytest.mark.django_db(transaction=True)
def test_cell_card_opens_on_focus_and_hover(browser_page: Page) -> None:
    config = make_measured_config()
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
def test_matrix_toolbar_on_phone_is_one_menu(browser_page: Page) -> None:
    make_measured_config()
    browser_page.set_viewport_size({"width": 390, "height": 844})
    browser_page.goto("/matrix/")
    form = browser_page.locator("#filter")
    expect(form).to_be_hidden()
    browser_page.get_by_role("button", name="View").click()
    form.get_by_label("Target").select_option("80")
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
def test_pages_on_phone_fit_width_in_both_themes(browser_page: Page) -> None:
    builtin_data.load_builtin_data()
    config = make_measured_config()
    record_heartbeat("worker")
    providers = [f"/providers/{pk}/" for pk in Provider.objects.values_list("pk", flat=True)]
    browser_page.set_viewport_size({"width": 360, "height": 780})
    for path in (*PAGES, *providers, f"/matrix/?cell={config.pk}"):
        browser_page.goto(path)
        for theme in ("light", "dark"):
            assert browser_page.evaluate(TOO_WIDE, theme) <= 0, (path, theme)


def test_matrix_page_counts_ranked_rows(owner_client: Client) -> None:
    """The third row is not ranked, since its scenario has an earlier version."""
    for name, version in (("a", 2), ("b", 2), ("c", 1)):
        cell = make_cell(make_config(make_run(), make_model(name)), scenario_version=version)
        make_trials(cell, **{"pass": 9, "fail": 1})
    assert "1 other configuration overlaps with the best" in read_html(owner_client.get("/matrix/"))
    text = read_html(owner_client.get("/matrix/?view=bars"))
    assert "2 rows are compared: confirm the best one on new trials." in text
    assert "no clear winner: 1 other row overlaps with the best" in text
    assert text.count("scenario version 1 · not ranked") == 1
    assert "1 row is not ranked, since other rows have newer versions than happy_path version 1" in text
