"""Template tags and filters for figures and outcomes, and their use on every page."""

import html
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.template import Context, Template
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from tests.page_html import collapse_html, read_html
from tests.web.run_urls import iter_run_urls
from toolbench.evals.statistics import compute_quantile
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.lab.metrics.rate import build_rate
from toolbench.lab.metrics.values import Figure
from toolbench.web.templatetags.figures import figure, money, seconds, span, split_first_sentence

QUANTILE = re.compile(r"[\d.]+ s \[(?:[\d.]+|open) – (?:[\d.]+|open), n = [\d,]+\]")
TEMPLATES = Path(__file__).parents[3] / "templates"
OLDER_LIMITS = re.compile(r"from 60|under 60|n ?< ?60|60 answers")


def render(source: str, **context: object) -> str:
    return collapse_html(Template("{% load figures %}" + source).render(Context(context)))


def test_moment_and_day_have_one_form_and_are_empty_for_none() -> None:
    saved_at = datetime(2026, 11, 3, 9, 7, 5, tzinfo=UTC)
    source = '{{ at|moment }}|{{ at|moment:"seconds" }}|{{ at|day }}|{{ no|moment }}|{{ no|day }}'
    assert render(source, at=saved_at, no=None) == "3 Nov 2026, 09:07|3 Nov 2026, 09:07:05|3 Nov 2026||"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("No winner: glm-4.7 is ahead. It has 3.5 s. More.", ("No winner: glm-4.7 is ahead.", "It has 3.5 s. More.")),
        ("Only one qualifies.", ("Only one qualifies.", "")),
        ("", ("", "")),
    ],
)
def test_split_first_sentence_ends_at_a_stop_before_a_space(text: str, parts: tuple[str, str]) -> None:
    assert split_first_sentence(text) == parts


def test_rate_tag_shows_count_percentage_and_interval() -> None:
    rendered = render("{% rate rate %}", rate=build_rate(36, 40))
    assert "<b>36/40</b>" in rendered
    assert "90&nbsp;%" in rendered
    assert "[77–96]" in rendered


def test_rate_tag_without_trials_shows_no_percentage() -> None:
    assert "%" not in render("{% rate rate %}", rate=build_rate(0, 0))
    assert render("{% ci rate %}", rate=build_rate(0, 0)) == ""


def test_rate_tag_of_withheld_interval_shows_distinct_answers() -> None:
    rendered = render("{% rate rate %}", rate=build_rate(10, 10, distinct=1, withheld=True))
    assert "1 distinct" in rendered
    assert "[" not in rendered


def test_mark_tag_without_word_has_aria_label() -> None:
    assert 'role="img" aria-label="infrastructure"' in render('{% mark "infra" "" %}')
    assert "aria-label" not in render('{% mark "pass" %}')


def test_dots_tag_puts_20_trials_on_a_line() -> None:
    rendered = render("{% dots counts %}", counts={"pass": 25, "fail": 5})
    assert 'aria-label="25 pass, 5 fail"' in rendered
    assert re.findall(r"--n: (\d+)", rendered) == ["20", "5", "5"]


def test_dots_tag_renders_hundreds_of_trials_as_bar() -> None:
    rendered = render("{% dots counts %}", counts={"pass": 150, "fail": 150})
    assert 'class="progress"' in rendered
    assert "--n: 50.0" in rendered


@pytest.mark.parametrize(
    ("value", "text"), [(None, "unknown"), (0, "$0.00"), (0.0012, "$0.0012"), (1234.5, "$1,234.50")]
)
def test_money_renders_unknown_cost_as_unknown(value: float | None, text: str) -> None:
    assert money(value) == text


@pytest.mark.parametrize(("value", "text"), [(40, "40 s"), (200, "3 min"), (7500, "2 h 5 min"), (None, "unknown")])
def test_span_renders_seconds_minutes_and_hours(value: float | None, text: str) -> None:
    assert span(value) == text


def test_figure_renders_range_once_if_ends_are_equal() -> None:
    assert figure(Figure(1000, 1000, "ms")) == "1.0"
    assert figure(Figure(1000, 2500, "ms")) == "1.0–2.5"
    assert figure(None) == seconds(None) == ""
    assert [seconds(value) for value in (0, 3, 24.4, 100, 1234)] == ["0.0", "0.003", "0.024", "0.1", "1.2"]


def test_figure_rounds_no_share_to_0_or_100_percent() -> None:
    shares = (0.0, 0.0004, 0.5, 0.9997, 1.0)
    assert [figure(Figure(share, share, "share")) for share in shares] == [
        "0.0 %",
        "<0.1 %",
        "50.0 %",
        ">99.9 %",
        "100.0 %",
    ]


def test_mark_and_empty_state_tags_escape_text() -> None:
    assert "<script" not in render("{% mark outcome word %}", outcome="fail", word="<script>alert(1)</script>")
    assert "<script" not in render(
        "{% empty_state title %}{{ text }}{% endempty_state %}", title="<script>", text="<script>"
    )


def test_quantile_tag_with_open_bound_is_not_bold() -> None:
    rendered = [render("{% quantile found %}", found=compute_quantile([3_500.0] * n, 0.95)) for n in (71, 72)]
    assert "<b>" not in rendered[0]
    assert "<b>3.5 s</b>" in rendered[1]
    assert [re.sub(r"<[^>]+>", "", text).strip() for text in rendered] == [
        "3.5 s [3.5 – open, n = 71]",
        "3.5 s [3.5 – 3.5, n = 72]",
    ]
    assert re.sub(r"<[^>]+>", "", render("{% quantile found %}", found=None)).strip() == "–"


NEEDED = (
    ("answers_needed", 50, "6"), ("answers_needed", 95, "72"), ("answers_needed", 99, "368"),
    ("passes_needed", 90, "35"), ("passes_needed", 95, "73"),
)  # fmt: skip


@pytest.mark.parametrize(("tag", "percent", "number"), NEEDED)
def test_answers_and_passes_needed_tags_render_numbers(tag: str, percent: int, number: str) -> None:
    assert render(f"{{% {tag} {percent} %}}") == number


def test_templates_contain_no_computed_number() -> None:
    typed = re.compile(rf"\b({'|'.join(number for *_, number in NEEDED if number != '6')})\b|\b6 answers")
    found = {
        path.name: typed.findall(text)
        for path in TEMPLATES.rglob("*.html")
        if typed.search(text := re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8")))
    }
    assert not found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "/decide/?scope=real",
            "72 answers; a target of 90 % needs 35 passes without a failure, 95 % needs 73.",
        ),
        (
            "/decide/?scope=demo",
            "Start a run with simulated models. p95 has an upper bound from 72 answers in one scenario.",
        ),
        ("/runs/new/", "p95 has an upper bound from 72 answers; below that its bound is open."),
    ],
)
def test_pages_show_number_of_answers_needed(owner_client: Client, address: str, sentence: str) -> None:
    make_model()
    assert sentence in _get_page_text(owner_client, address)


@pytest.mark.django_db
def test_quantile_of_run_is_equal_on_every_page(owner_client: Client) -> None:
    """Every quantile that a page shows of this run is a nearest-rank quantile of its trials."""
    run, other = make_run(), make_run()
    pools: list[list[float]] = []
    for shift, run_of_config, profile in ((37_000.0, other, "other"), (0.0, run, "default")):
        config = make_config(run_of_config, profile=profile)
        times_by_scenario = {"happy_path": 1_000.0, "type_error_recovery": 9_000.0, "chat_only": 20_000.0}
        pools += [[begin + shift + 130.0 * place for place in range(20)] for begin in times_by_scenario.values()]
        for scenario, times in zip(times_by_scenario, pools[-3:], strict=True):
            cell = make_cell(config, scenario)
            for time in times:
                make_trial(cell, duration_ms=time)
        pools.append([*pools[-3], *pools[-2]])
    recompute_stale_cells()
    known = {render_quantile(compute_quantile(times, q)) for times in pools for q in (0.5, 0.95, 0.99)}
    p50, p95 = (render_quantile(compute_quantile(pools[-1], q)) for q in (0.5, 0.95))

    pages = {address: _get_page_text(owner_client, address) for address in ("/runs/", *iter_run_urls(run, other))}

    assert {text for page in pages.values() for text in QUANTILE.findall(page)} <= known
    assert [address for address, page in pages.items() if OLDER_LIMITS.search(page)] == []
    for name in ("/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/metrics/", "/matrix/", "/compare/"):
        rendered = next(page for address, page in pages.items() if address.partition("?")[0] == name)
        assert p50 in rendered, name
        assert p95 in rendered, name
    latency = next(page for address, page in pages.items() if address.startswith("/latency/"))
    for text in (p50, p95):  # value and bounds have columns of their own
        value, low, high = re.findall(r"\d+\.\d+|open", text)
        assert f"{value} {low}–{high}" in latency
    assert p95 in next(page for address, page in pages.items() if address.startswith("/decide/"))
    compared = next(page for address, page in pages.items() if address.startswith("/compare/"))
    sides = [render_quantile(compute_quantile(pool, q)) for pool in (pools[3], pools[-1]) for q in (0.5, 0.95)]
    assert [text for text in sides if text not in compared] == []


def _get_page_text(client: Client, address: str) -> str:
    """Return the text of an HTML page; "" for other content."""
    answer = client.get(address)
    if not answer.headers["Content-Type"].startswith("text/html"):
        return ""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", read_html(answer))).split())
