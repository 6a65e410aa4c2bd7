"""Answers with status 429 and 5xx, retries and back-off on result pages, and the links of their counts."""

import html
import re

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.metrics.cells import recompute_immediately
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db
LINK = re.compile(r'href="(/trials/\?[^"]*had=[^"]*)" data-count="\d+">([\d,]+) trials?')
EXPECTED_TEXT = "4 answers with status 429"


@pytest.fixture
def run() -> Run:
    """Two configurations, each with two tool scenarios and the control; the first had 4 answers with status 429."""
    run = make_run()
    for place, is_limited in enumerate((True, False)):
        config = make_config(run, model_name=f"vendor/model-{place}", position=place)
        for scenario, rejection_counts in (
            ("happy_path", (2, 1)),
            ("type_error_recovery", (1, 0)),
            ("chat_only", (1,)),
        ):
            cell = make_cell(config, scenario)
            for rejections in rejection_counts:
                trial = make_trial(cell, retries=rejections if is_limited else 0)
                for attempt in range(1, rejections + 1 if is_limited else 1):
                    backoff_ms = 250.0 if attempt > 1 else 0.0
                    make_step(trial, status=429, ok=False, attempt=attempt, backoff_ms=backoff_ms)
                make_step(trial, status=200, attempt=rejections + 1 if is_limited else 1, backoff_ms=250.0 * is_limited)
    recompute_stale_cells()
    return run


def count_opened_trials(client: Client, address: str) -> int:
    text = read_html(client.get(html.unescape(address)))
    found = re.search(r"([\d,]+) trials? match", text)
    assert found is not None
    return int(found[1].replace(",", ""))


def build_addresses(run: Run) -> dict[str, str]:
    first, second = run.configs.all()
    return {
        "run": f"/runs/{run.pk}/",
        "matrix": f"/matrix/?run={run.pk}&scope=runs&cell={first.pk}",
        "compare": f"/compare/?a_config={first.pk}&b_config={second.pk}",
        "decide": f"/decide/?run={run.pk}&scope=runs",
    }


@pytest.mark.parametrize("name", ["run", "matrix", "compare", "decide"])
def test_pages_show_answers_of_429_and_links_open_their_trials(owner_client: Client, run: Run, name: str) -> None:
    text = read_html(owner_client.get(build_addresses(run)[name]))
    assert EXPECTED_TEXT in text
    assert "0 answers with status 429" in text or name in ("run", "matrix")
    for address, count in LINK.findall(text):
        assert count_opened_trials(owner_client, address) == int(count), address
    assert LINK.findall(text) or name in ("compare", "decide")


@pytest.mark.parametrize("name", ["run", "matrix", "compare", "decide"])
def test_pages_show_unknown_for_answers_without_status(owner_client: Client, run: Run, name: str) -> None:
    for trial in run.trials.all():
        make_step(trial, status=None)
    recompute_immediately(run.cells.values_list("pk", flat=True))
    text = read_html(owner_client.get(build_addresses(run)[name]))
    assert "answers with status 429 and 5xx: unknown" in text
    assert "answers with status 429 in" not in text


def test_matrix_page_shows_unknown_retries_as_unknown(owner_client: Client, run: Run) -> None:
    make_step(run.trials.filter(scenario="happy_path")[0], status=None)
    recompute_immediately(run.cells.values_list("pk", flat=True))
    for metric in ("answers_429", "retried", "backoff"):
        text = read_html(owner_client.get(f"/matrix/?run={run.pk}&scope=runs&metric={metric}"))
        assert 'class="muted">unknown<' in text
