"""The compare page: changed instances, the plan of missing trials, figures of runs in progress, and the title."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Run, Trial
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.page import get_sides_page
from toolbench.lab.results.compare.query import CompareQuery

pytestmark = pytest.mark.django_db


def test_compare_page_links_trials_of_the_changed_stratum() -> None:
    """Instance 3 regressed for one model in version 1 only, so the trials of that stratum are linked."""
    a, b = make_run(instance_kind="drawn"), make_run(instance_kind="drawn")
    for run, outcome in ((a, "pass"), (b, "fail")):
        for model, version in (("one", 1), ("one", 2), ("two", 1)):
            cell = make_cell(make_config(run, make_model(model)), scenario_version=version)
            for seed in range(12):
                changes = seed == 3 and (model, version) == ("one", 1)
                make_trial(cell, outcome if changes else "pass" if run is a else "fail", instance_seed=seed)
                if not changes and run is a:
                    make_trial(cell, "fail", instance_seed=seed)
    recompute_stale_cells()
    found = get_sides_page(CompareQuery.from_query(QueryDict(f"a_run={a.pk}&b_run={b.pk}"))).pair
    assert found
    assert found.comparison.how == "paired"
    (changed,) = found.changed_instances
    for pk in (changed.first, changed.second):
        trial = Trial.objects.select_related("config").get(pk=pk)
        assert (trial.config.model_name, trial.scenario_version, trial.instance_seed) == ("one", 1, 3)


@pytest.mark.parametrize(("metric", "fields"), [("first", {"output_retries": 1}), ("delivered", {"errors_retried": 1})])
def test_compare_page_links_passes_that_the_metric_counts_as_failures(metric: str, fields: dict[str, int]) -> None:
    a, b = make_run(instance_kind="drawn"), make_run(instance_kind="drawn")
    for run in (a, b):
        cell = make_cell(make_config(run))
        for seed in range(12):
            make_trial(cell, "pass", instance_seed=seed, **(fields if run is b and seed == 3 else {}))
    recompute_stale_cells()
    found = get_sides_page(CompareQuery.from_query(QueryDict(f"a_run={a.pk}&b_run={b.pk}&metric={metric}"))).pair
    assert found
    assert [(changed.change, changed.instance) for changed in found.changed_instances] == [("regressed", 3)]


def test_compare_page_links_failures_that_the_metric_counts() -> None:
    """Instance 3 regressed by its failed trial; its infrastructure error is no answer."""
    a, b = make_run(instance_kind="drawn"), make_run(instance_kind="drawn")
    for run in (a, b):
        cell = make_cell(make_config(run))
        for seed in range(12):
            failed = run is b and seed == 3
            for outcome in ("fail", "infra") if failed else ("pass",):
                make_trial(cell, outcome, instance_seed=seed)
    recompute_stale_cells()
    found = get_sides_page(CompareQuery.from_query(QueryDict(f"a_run={a.pk}&b_run={b.pk}"))).pair
    assert found
    (changed,) = found.changed_instances
    assert Trial.objects.get(pk=changed.second).outcome == "fail"


@pytest.mark.parametrize(
    ("fields", "purpose", "has_plan"),
    [
        ({}, "", True),
        ({"examples": "weather-1"}, "", True),
        ({"examples": "one_call"}, "", False),
        ({"tool_use_mode": "relaxed"}, "", False),
        ({}, Run.PLAYGROUND, False),
    ],
)
def test_sides_page_plans_only_trials_that_the_launch_form_offers(
    fields: dict[str, str], purpose: str, has_plan: bool
) -> None:
    run = make_run(purpose=purpose)
    make_trial(make_cell(make_config(run, make_model("one"))))
    make_trial(make_cell(make_config(run, make_model("two"), **fields)))
    recompute_stale_cells()
    query = CompareQuery.from_query(QueryDict(f"run={run.pk}&a_model=one&b_model=two"))
    assert bool(get_sides_page(query).plan_query) == has_plan


def test_sides_page_plans_streamed_and_whole_answers() -> None:
    run, model = make_run(), make_model()
    for stream in (False, True):
        make_trial(make_cell(make_config(run, model, stream=stream)))
    recompute_stale_cells()
    query = CompareQuery.from_query(QueryDict(f"run={run.pk}&a_stream=whole&b_stream=streamed"))
    assert QueryDict(get_sides_page(query).plan_query)["stream"] == "both"


def test_sides_page_plans_trials_with_and_without_examples() -> None:
    run, model = make_run(), make_model()
    for examples in ("", "weather-1"):
        make_trial(make_cell(make_config(run, model, examples=examples)))
    recompute_stale_cells()
    query = CompareQuery.from_query(QueryDict(f"run={run.pk}&a_examples=none&b_examples=weather-1"))
    assert QueryDict(get_sides_page(query).plan_query).getlist("examples") == ["none", "weather-1"]


def test_sides_page_counts_new_trials_of_a_running_run() -> None:
    make_trial(make_cell(make_config(make_run())))
    recompute_stale_cells()
    refresh_pools()
    running = make_run(state=Run.State.RUNNING)
    cells = [make_cell(make_config(running, make_model(name))) for name in ("one", "two")]
    query = CompareQuery.from_query(QueryDict(f"a_config={cells[0].config_id}&b_config={cells[1].config_id}"))

    def count_trials() -> list[int]:
        return [row.figures.trials for row in get_sides_page(query).comparison.rows]

    for cell in cells:
        make_trial(cell)
    assert count_trials() == [1, 1]
    make_trial(cells[1])
    assert count_trials() == [1, 2]


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("a_run=3&b_run=4", "Run 4 against run 3"),
        ("a_run=3", "Nothing chosen against run 3"),
        ("a_model=perfect&b_model=reliable-70", "reliable-70 against perfect"),
        ("run=3&b_model=reliable-70", "reliable-70 against run 3"),
    ],
)
def test_comparison_title_keeps_identifiers_as_they_are(query: str, title: str) -> None:
    assert get_comparison(CompareQuery.from_query(QueryDict(query))).title == title
