"""Latency page: charts and table in every scope, and exported charts."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_published_snapshot,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.lab.results.latency import page as latency_page

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def trials() -> None:
    for model in ("vendor/a <b>", "vendor/c"):
        config = make_config(make_run(), make_model(model))
        make_trials(make_cell(config), **{"pass": 3, "infra": 1})
        make_trial(make_cell(config, "type_error_recovery"), first_token_ms=300.0)
    recompute_stale_cells()


def test_latency_page_shows_charts_and_table_without_plotly(trials: None, owner_client: Client) -> None:
    shown = read_html(owner_client.get("/latency/?by=scenario"))
    assert "plotly" not in shown
    assert shown.count('class="dot"') == 2
    assert 'aria-label="p50 and p95 in type_error_recovery"' in shown
    assert "1.0–open" in shown
    assert "open–open" not in shown
    assert shown.count(">type_error_recovery</th>") == 2
    assert ">type_error_recovery</th>" not in read_html(owner_client.get("/latency/"))


@pytest.mark.parametrize("query", ["", "?metric=first_token", "?metric=backoff&group=x", "?scope=demo", "?run=9999"])
def test_latency_page_answers_every_scope(query: str, trials: None, owner_client: Client) -> None:
    assert "Latency · Toolbench" in read_html(owner_client.get(f"/latency/{query}"))


def test_latency_page_names_one_number_of_answers_once(owner_client: Client) -> None:
    for counts in ((2, 1), (2, 3)):
        config = make_config(make_run(), make_model(f"vendor/{counts[1]}"))
        for scenario, count in zip(("happy_path", "type_error_recovery"), counts, strict=True):
            make_trials(make_cell(config, scenario), **{"pass": count})
    shown = " ".join(read_html(owner_client.get("/latency/")).split())
    assert ">2 answers each</span>" in shown
    assert ">1–3 answers each</span>" in shown


def test_latency_page_without_times_leads_to_the_next_page(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, time, first_token in (("vendor/fast", 100.0, None), ("vendor/slow", 200.0, 50.0)):
        cell = make_cell(make_config(make_run(), make_model(model)))
        make_trial(cell, duration_ms=time, first_token_ms=first_token)
    recompute_stale_cells()
    monkeypatch.setattr(latency_page, "MAX_ROWS", 1)
    shown = read_html(owner_client.get("/latency/?metric=first_token"))
    assert "No configuration on this page has this time" in " ".join(shown.split())
    assert "page=2" in shown
    assert "vendor/slow" in read_html(owner_client.get("/latency/?metric=first_token&page=2"))


def test_latency_page_of_published_scope_says_what_is_missing(owner_client: Client) -> None:
    assert "No published snapshot" in read_html(owner_client.get("/latency/?scope=published"))
    make_published_snapshot(("vendor/a", "default", 8, 10))
    shown = read_html(owner_client.get("/latency/?scope=published"))
    assert "bounds and times by scenario are not published" in shown


@pytest.mark.parametrize("chart", ["dots", "shares"])
def test_export_chart_returns_complete_svg_file(chart: str, trials: None, owner_client: Client) -> None:
    answer = owner_client.get(f"/latency/{chart}.svg")
    assert answer["Content-Type"] == "image/svg+xml"
    assert f'filename="toolbench-latency-{chart}.svg"' in answer["Content-Disposition"]
    drawing = ElementTree.fromstring(answer.content)
    texts = ["".join(found.itertext()) for found in drawing.iter(f"{SVG}text")]
    assert any("a <b>" in text for text in texts)
    assert len(list(drawing.iter(f"{SVG}path"))) >= 8
    assert "var(" not in answer.content.decode()


def test_export_chart_of_simulated_models_is_labelled(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 2})
    recompute_stale_cells()
    for chart in ("dots", "shares"):
        assert "Simulated models." in owner_client.get(f"/latency/{chart}.svg?scope=demo").content.decode()


def test_export_chart_of_unknown_chart_or_published_scope_is_404(owner_client: Client) -> None:
    assert owner_client.get("/latency/pie.svg").status_code == 404
    assert owner_client.get("/latency/dots.svg?scope=published").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_export_chart_as_png_is_downloaded_in_browser(trials: None, browser_page: Page, tmp_path: Path) -> None:
    page = browser_page
    page.goto("/latency/")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as started:
        page.get_by_role("link", name="Every answer, PNG").click()
    assert started.value.suggested_filename == "toolbench-latency-dots.png"
    started.value.save_as(saved := tmp_path / "chart.png")
    content = saved.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == 2 * 960
