"""The run page: rates, failures, times, pace and pages of configurations."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial, make_trials
from tests.page_html import read_html
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.metrics.cells import mark_stale, recompute, recompute_stale
from toolbench.lab.models import Model, Provider, Run, Trial
from toolbench.lab.results.run import page
from toolbench.lab.results.run.index import get_runs
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials

pytestmark = pytest.mark.django_db


def test_run_page_infra_errors_count_only_in_end_to_end_success() -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "fail": 1, "infra": 2})
    line = get_run_page(run.pk).config_rows[0]
    assert (line.answered.k, line.answered.n) == (3, 4)
    assert (line.delivered.k, line.delivered.n) == (3, 6)


def test_run_page_tool_rate_excludes_controls() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 2})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    line = get_run_page(run.pk).config_rows[0]
    assert (line.answered.k, line.answered.n) == (2, 2)
    assert line.control.failed == 2


def test_run_page_groups_failures_by_signature_most_frequent_first() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config, "type_error_recovery"), **{"fail": 1})
    make_trials(make_cell(config), **{"fail": 3})
    assert [(group.scenario, group.count) for group in get_run_page(run.pk).groups] == [
        ("happy_path", 3),
        ("type_error_recovery", 1),
    ]


def test_run_page_links_configurations_to_trials_without_controls() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1})
    make_trials(make_cell(config, "case-one", scenario_group="own"), **{"fail": 2})
    make_trials(make_cell(config, "case-two", scenario_group="own", control=True), **{"pass": 3})
    rows = get_run_page(config.run_id).config_rows
    listed = [filter_trials(TrialFilter.from_query(QueryDict(row.trials_query))).count() for row in rows]
    assert listed == [row.tally.trial_count for row in rows] == [1, 2]


def test_run_page_retryable_errors_need_an_existing_provider() -> None:
    run = make_run()
    deleted_provider_config = make_config(run, make_model("b", provider=make_provider("Gone")))
    for config in (make_config(run), deleted_provider_config):
        make_trials(make_cell(config), **{"infra": 3})
    Model.objects.filter(name="b").delete()
    Provider.objects.filter(name="Gone").delete()
    assert get_run_page(run.pk).retryable == 3


def test_run_page_reads_no_layers_options_or_requests() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 1, "fail": 1, "queued": 1})
    with CaptureQueriesContext(connection) as queries:
        get_run_page(run.pk)
        get_runs("own")
    statements = " ".join(query["sql"] for query in queries.captured_queries)
    assert not [name for name in ('"layers"', '"options"', '"request"') if name in statements]


def test_run_page_of_paused_run_is_live_until_trials_are_recounted() -> None:
    run = make_run(state=Run.State.PAUSED)
    cell = make_cell(make_config(run))
    make_trials(cell, **{"running": 1, "queued": 1})
    live_states = [get_run_page(run.pk).live]
    run.trials.filter(state="running").update(state="done", outcome="pass")
    for update in (mark_stale, recompute):
        update([cell.pk])
        live_states.append(get_run_page(run.pk).live)
    assert live_states == [True, True, False]


def test_run_page_failure_group_knows_whether_sentences_differ() -> None:
    run = make_run()
    first, second = make_trials(make_cell(make_config(run)), **{"fail": 2})
    assert get_run_page(run.pk).groups[0].has_one_sentence
    type(first).objects.filter(pk=second.pk).update(sentence="Something else.")
    assert not get_run_page(run.pk).groups[0].has_one_sentence


def test_run_page_pace_has_a_range_of_the_time_left() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 20, "queued": 10})
    Trial.objects.filter(outcome="pass").update(started_at=timezone.now() - timedelta(seconds=60))
    pace = get_run_page(run.pk).pace
    assert pace.seconds_left is not None
    assert pace.seconds_left_low is not None
    assert pace.seconds_left_high is not None
    assert pace.seconds_left_low < pace.seconds_left < pace.seconds_left_high


def test_run_page_names_a_provider_that_is_not_running() -> None:
    run = make_run(state=Run.State.RUNNING)
    local_provider = make_provider("Away", base_url="", service="local-own", kind=Provider.Kind.LOCAL)
    cell = make_cell(make_config(run, make_model("tiny", provider=local_provider)))
    make_trials(cell, **{"pass": 1, "queued": 2})
    (line,) = get_run_page(run.pk).blocking_providers
    assert (line.provider, line.state_text) == (local_provider, "not running")
    make_trial(cell, "running")
    mark_stale([cell.pk])
    recompute_stale()
    assert get_run_page(run.pk).blocking_providers == ()


def test_run_page_at_its_request_limit_says_so() -> None:
    run = make_run(state=Run.State.PAUSED, request_cap=10, requests_reserved=10)
    assert get_run_page(run.pk).is_limit_reached
    assert not get_run_page(make_run(request_cap=10, requests_reserved=9).pk).is_limit_reached


def test_run_page_has_no_pace_before_two_finished_trials() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 1, "queued": 9})
    assert get_run_page(run.pk).pace.per_minute is None


def test_run_page_of_a_deleted_run_raises_does_not_exist() -> None:
    run = make_run(deleted_at=timezone.now())
    with pytest.raises(Run.DoesNotExist):
        get_run_page(run.pk)


def test_run_page_number_of_queries_does_not_grow_with_cells(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    run = make_run(state=Run.State.RUNNING)
    for _ in range(6):
        config = make_config(run)
        make_trials(make_cell(config), **{"pass": 1, "fail": 1})
    with django_assert_num_queries(7):
        get_run_page(run.pk)


def test_run_page_row_pools_the_times_of_tool_scenarios() -> None:
    config = make_config(make_run())
    for scenario, time in (("happy_path", 100.0), ("type_error_recovery", 900.0), ("chat_only", 5_000.0)):
        make_trial(make_cell(config, scenario), duration_ms=time)
    recompute_stale()
    (line,) = get_run_page(config.run_id).config_rows
    assert (line.times.p50, line.times.p95) == (
        compute_quantile([100.0, 900.0], 0.5),
        compute_quantile([100.0, 900.0], 0.95),
    )
    assert [scenario.times.p95 for scenario in line.scenarios] == [
        compute_quantile([time], 0.95) for time in (100.0, 900.0, 5_000.0)
    ]


def test_run_page_first_attempt_rate_needs_a_re_prompted_trial() -> None:
    run = make_run()
    plain, re_prompted = make_cell(make_config(run)), make_cell(make_config(run, make_model("vendor/model-b")))
    make_trial(plain, "pass")
    make_trial(re_prompted, "pass", asked_again=1, output_retries=1)
    make_trial(re_prompted, "pass")
    recompute_stale()
    first, second = get_run_page(run.pk).config_rows
    assert first.first_attempt is None
    assert second.first_attempt is not None
    assert (second.first_attempt.k, second.answered.k) == (1, 2)


def test_run_page_splits_many_configurations_into_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_ROWS", 2)
    run = make_run()
    for name in ("a", "b", "c"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 2})
    pages = [get_run_page(run.pk, number) for number in (1, 2, 9)]
    assert [[line.config.model_name for line in found.config_rows] for found in pages] == [["a", "b"], ["c"], ["c"]]
    assert [(found.page, found.pages, found.tally.passed) for found in pages] == [(1, 2, 6), (2, 2, 6), (2, 2, 6)]
    assert len(get_run_page(run.pk).config_rows) == 3


def test_run_page_links_the_pages_of_a_large_run(owner_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_ROWS", 1)
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 2})
    html = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert 'rel="next" href="?page=2"' in html
    second = read_html(owner_client.get(f"/runs/{run.pk}/?page=2"))
    assert re.findall(r"<b>(alpha|beta)</b></a>", second) == ["beta"]
    assert re.findall(r"<option value=\"\d+\">happy_path · .*(alpha|beta).*</option>", second) == ["beta"]


def test_run_page_failure_group_names_its_models(owner_client: Client) -> None:
    run = make_run()
    for name, outcomes in (("vendor/a", {"fail": 2}), ("vendor/b", {"fail": 1}), ("vendor/c", {"pass": 1})):
        make_trials(make_cell(make_config(run, make_model(name))), **outcomes)
    make_trials(make_cell(make_config(run, make_model("vendor/d")), "weather"), **{"fail": 1})
    assert [group.models for group in get_run_page(run.pk).groups] == [("vendor/a", "vendor/b"), ("vendor/d",)]
    text = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert "vendor/a, vendor/b" in text


def test_run_page_names_no_scenario_of_a_group_with_several(owner_client: Client) -> None:
    config = make_config(make_run())
    for scenario in ("happy_path", "weather"):
        make_trial(make_cell(config, scenario), "infra", signature="our_error")
    assert [(group.scenario, group.count) for group in get_run_page(config.run_id).groups] == [("", 2)]
    assert ">several<" in read_html(owner_client.get(f"/runs/{config.run_id}/"))


def test_run_page_links_a_failure_group_to_its_trials_only() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "fail", signature="one")
    make_trial(cell, "infra", signature="one")
    queries = [QueryDict(group.trials_query) for group in get_run_page(cell.run_id).groups]
    found = [filter_trials(TrialFilter.from_query(query)).values_list("outcome", flat=True) for query in queries]
    assert [list(outcomes) for outcomes in found] == [["fail"], ["infra"]]


@pytest.mark.parametrize(
    ("counts_by_model", "is_common"),
    [
        ([{"fail": 5}, {"fail": 5}], True),
        ([{"fail": 5}, {"fail": 4}], False),
        ([{"fail": 5}, {"fail": 5, "pass": 1}], False),
        ([{"fail": 10}], False),
        ([{"fail": 10}, {}], False),
    ],
)
def test_run_page_says_to_check_endpoint_if_no_model_passed(
    owner_client: Client, counts_by_model: list[dict[str, int]], is_common: bool
) -> None:
    run = make_run()
    for number, counts in enumerate(counts_by_model):
        make_trials(make_cell(make_config(run, make_model(f"vendor/{number}"))), **counts)
    assert (get_run_page(run.pk).common_failure is not None) == is_common
    text = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert ("check the endpoint first" in text) == is_common


def test_run_page_of_several_failure_classes_does_not_blame_endpoint() -> None:
    run = make_run()
    cell = make_cell(make_config(run))
    make_trials(cell, **{"fail": 10})
    make_trial(cell, "fail", failure_class="wrong_tool", signature="wrong_tool · happy_path")
    recompute_stale()
    assert get_run_page(run.pk).common_failure is None


def test_run_page_says_that_overall_leaves_out_controls(owner_client: Client) -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 2})
    assert "leaves out the controls" not in read_html(owner_client.get(f"/runs/{run.pk}/"))
    make_trials(make_cell(config, "chat_only"), **{"pass": 2})
    assert "Overall leaves out the controls" in read_html(owner_client.get(f"/runs/{run.pk}/"))
