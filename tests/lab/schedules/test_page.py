from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_run
from tests.lab.schedules.scheduled import make_rule, make_schedule
from toolbench.lab.models import Alert, Run
from toolbench.lab.schedules.page import get_schedule_page, get_schedules_page

pytestmark = pytest.mark.django_db


def test_get_schedules_page_counts_each_schedule_with_nine_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(3):
        schedule = make_schedule(name=f"Schedule {number}")
        rule, rule_for_all = make_rule("drift", schedule), make_rule("spend", None, 5)
        for _ in range(number):
            run = make_run(schedule=schedule, requests_reserved=7)
            Alert.objects.create(rule=rule, run=run, series=str(run.pk), sentence="Success dropped.")
            Alert.objects.create(rule=rule_for_all, run=run, series=str(run.pk), sentence="Too dear.")
        last_month = make_run(schedule=schedule, requests_reserved=100)
        Run.objects.filter(pk=last_month.pk).update(
            created_at=timezone.now() - timedelta(days=40), deleted_at=timezone.now()
        )
    with django_assert_max_num_queries(9):
        page = get_schedules_page()
    last_runs = [Run.objects.filter(schedule=row.schedule, deleted_at=None).order_by("pk").last() for row in page.rows]
    assert [row.last_run for row in page.rows] == last_runs
    assert [(row.spent, row.open_alerts) for row in page.rows] == [(0, 0), (7, 1), (14, 2)]
    assert [row.open_alerts for row in page.rules] == [0, 1, 2]
    assert [row.last.sentence if row.last else "" for row in page.rules] == ["", "Too dear.", "Too dear."]
    schedule_page = get_schedule_page(page.rows[2].schedule)
    assert (schedule_page.spent, [row.open_alerts for row in schedule_page.rules]) == (14, [2])
