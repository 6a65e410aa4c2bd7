import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.lab.schedules.scheduled import add_run, make_schedule
from tests.page_html import read_html
from toolbench.lab.models import Schedule

pytestmark = pytest.mark.django_db


@pytest.fixture
def schedule() -> Schedule:
    """Schedule of two configurations; the first one fails every trial of the fourth run."""
    schedule = make_schedule()
    schedule.baseline_runs.set([add_run(schedule, (20, 0), (18, 2)) for _ in range(3)])
    add_run(schedule, (0, 20), (18, 2))
    return schedule


def test_trend_page_without_schedule_explains_schedules(owner_client: Client) -> None:
    page = read_html(owner_client.get("/trend/"))
    assert "No schedule yet" in page
    assert "Plan a run</a>" in page


def test_trend_page_shows_drop_in_chart_and_table(owner_client: Client, schedule: Schedule) -> None:
    page = read_html(owner_client.get("/trend/"))
    assert f"Down 100 points since {timezone.now():%-d %b}" in page
    assert "<b>1</b> worse · <b>0</b> better · <b>2</b> configurations" in page
    assert page.count("No drift shown") >= 2
    assert len(re.findall(r'<circle class="pinned"', page)) == 6
    assert len(re.findall(r'<circle class="worse"', page)) == 1
    assert page.count('class="drift"') == 1
    assert "change begins" in page
    assert "0/20" in page


@pytest.mark.parametrize("measure", ["p50", "p95", "p99", "cost", "tokens", "unknown"])
def test_trend_page_draws_each_measure(measure: str, owner_client: Client, schedule: Schedule) -> None:
    page = read_html(owner_client.get(f"/trend/?measure={measure}&schedule={schedule.pk}"))
    assert page.count("<svg") == 2
    assert ('class="target"' in page) == (measure == "unknown")


def test_trend_page_of_schedule_without_run_or_baseline_says_so(owner_client: Client) -> None:
    make_schedule()
    page = read_html(owner_client.get("/trend/"))
    assert "No finished run yet" in page
    assert "No baseline is pinned" in page


def test_trend_page_shows_chosen_or_newest_schedule(owner_client: Client, schedule: Schedule) -> None:
    other = make_schedule(name="Another")
    assert "Trend: Another" in read_html(owner_client.get("/trend/"))
    assert "Trend: Core" in read_html(owner_client.get("/trend/", {"schedule": schedule.pk}))
    assert "Trend: Another" in read_html(owner_client.get("/trend/", {"schedule": other.pk + 99}))


def test_trend_page_needs_equal_queries_for_more_runs(owner_client: Client, schedule: Schedule) -> None:
    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert owner_client.get("/trend/").status_code == 200
        return len(queries)

    before = count_queries()
    for _ in range(3):
        add_run(schedule, (0, 20), (18, 2))
    assert count_queries() == before
