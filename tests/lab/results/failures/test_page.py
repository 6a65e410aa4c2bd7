"""Failures across runs: every count leads to exactly the trials behind it."""

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_published_snapshot,
    make_run,
    make_trial,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.evals.causes.table import load_causes, read_taxonomy_version
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import Run, Trial
from toolbench.lab.results.failures.page import get_causes_by_group, get_classes_by_kind, get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db


def make_failed_trial(run: Run, model: str, cause: str, *, path: str = "$", turn: int = 1, version: int = 0) -> Trial:
    config = run.configs.filter(model_name=model).first() or make_config(run, make_model(model))
    cell = config.cells.first() or make_cell(config)
    cause_found = {
        "code": cause,
        "path": path,
        "turn": turn - 1,
        "ordinal": 1,
        "mended": False,
        "healed": False,
        "count": 1,
    }
    signature = f"{cause} · happy_path · {path} · turn {turn}"
    taxonomy = version or read_taxonomy_version()
    return make_trial(cell, "fail", cause=cause, cause_signature=signature, causes=[cause_found], taxonomy=taxonomy)


@pytest.fixture
def runs() -> tuple[Run, Run]:
    first, second = make_run(), make_run()
    for run in (first, second):
        make_failed_trial(run, "a", "schema_type", path="$.ops[].path")
        make_failed_trial(run, "b", "no_call")
    passed = first.cells.get(config__model_name="a")
    make_trial(passed, instance_seed=99, taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    return first, second


def count_linked_trials(query: str) -> int:
    return get_trials(TrialFilter.from_query(QueryDict(query))).total


def test_heat_map_counts_trials_and_links_to_them(runs: tuple[Run, Run]) -> None:
    page = get_failures(FailuresQuery())
    assert [(column.model, column.tried) for column in page.heat_map.columns] == [("a", 3), ("b", 2)]
    assert [row.cause.code for row in page.heat_map.rows] == ["no_call", "schema_type"]
    schema_type_row = page.heat_map.rows[1]
    assert schema_type_row.cells[1] is None
    assert schema_type_row.cells[0] is not None
    assert (schema_type_row.cells[0].rate.k, schema_type_row.cells[0].rate.n) == (2, 3)
    assert (
        count_linked_trials(schema_type_row.cells[0].query)
        == count_linked_trials(schema_type_row.query)
        == schema_type_row.count
        == 2
    )


@pytest.mark.parametrize("look", ["", "first"])
def test_heat_map_has_rows_for_codes_that_the_table_lacks(
    runs: tuple[Run, Run], look: str, owner_client: Client
) -> None:
    trial = make_failed_trial(runs[0], "a", "code_of_later_version")
    Trial.objects.filter(pk=trial.pk).update(failure_class="code_of_later_version")
    page = get_failures(FailuresQuery(look=look))
    heat_map, row = page.heat_map, page.heat_map.rows[-1]
    assert (row.cause.code, row.cause.is_known, row.count, count_linked_trials(row.query)) == (
        "code_of_later_version",
        False,
        1,
        1,
    )
    assert sum(row.count for row in heat_map.rows) == heat_map.total
    for column, model in enumerate(heat_map.columns):
        cells = [row.cells[column] for row in heat_map.rows]
        assert sum(cell.rate.k for cell in cells if cell) == model.failure_count
    html = read_html(owner_client.get(f"/failures/?look={look}" if look else "/failures/"))
    assert "code_of_later_version, unknown to this version of Toolbench" in html
    assert "#code_of_later_version" not in html


def test_heat_map_names_providers_that_serve_one_model() -> None:
    run, other = make_run(), make_run()
    make_failed_trial(run, "a", "no_call")
    make_failed_trial(run, "b", "no_call")
    make_trial(
        make_cell(make_config(other, make_model("a", provider=make_provider("Second")))),
        "fail",
        cause="no_call",
        taxonomy=read_taxonomy_version(),
    )
    recompute_stale_cells()
    columns = get_failures(FailuresQuery()).heat_map.columns
    assert sorted((column.name, column.provider_label) for column in columns) == [
        ("a", run.configs.filter(model_name="a").get().provider_name),
        ("a", "Second"),
        ("b", ""),
    ]


def test_failure_group_spans_runs_and_has_an_exemplar_and_nearest_pass(runs: tuple[Run, Run]) -> None:
    clusters = {
        group.scenario + group.place: group for group in get_failures(FailuresQuery(by="scenario")).groups.shown
    }
    schema_group = clusters["happy_path$.ops[].path · turn 1"]
    assert (schema_group.count, schema_group.run_count, count_linked_trials(schema_group.query)) == (2, 2, 2)
    exemplar = Trial.objects.get(pk=schema_group.exemplar)
    assert exemplar.run_id == runs[0].pk
    assert schema_group.nearest is not None
    assert Trial.objects.get(pk=schema_group.nearest).cell_id == exemplar.cell_id


def test_failure_group_of_several_scenarios_and_models_links_its_trials() -> None:
    run = make_run()
    for model in ("a", "b"):
        config = make_config(run, make_model(model))
        for scenario in ("happy_path", "weather"):
            signature = f"no_call · {scenario} · $.a · b · turn 2"
            cell = make_cell(config, scenario)
            make_trial(cell, "fail", cause="no_call", cause_signature=signature, taxonomy=read_taxonomy_version())
            other_signature = f"no_call · {scenario} · $.x · $.a · b · turn 2"
            make_trial(cell, "fail", cause="no_call", cause_signature=other_signature, taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    groups = {group.path: group for group in get_failures(FailuresQuery()).groups.shown}
    group = groups["$.a · b"]
    assert (group.count, group.turn, group.models, group.scenario) == (4, "2", ("a", "b"), "")
    assert count_linked_trials(group.query) == 4
    by_model = get_failures(FailuresQuery(by="model")).groups
    assert [(found.count, count_linked_trials(found.query), len(found.models)) for found in by_model.shown] == [
        (2, 2, 1)
    ] * 4
    chosen = ResultFilter(models=("a", "b"), scenarios=("weather", "happy_path"))
    (column, _) = get_failures(FailuresQuery(chosen=chosen)).heat_map.columns
    (row,) = get_failures(FailuresQuery(chosen=chosen)).heat_map.rows
    assert row.cells[0] is not None
    assert (
        column.failure_count,
        row.cells[0].rate.k,
        count_linked_trials(row.cells[0].query),
        count_linked_trials(row.query),
    ) == (4, 4, 4, 8)


def test_failures_page_first_problem_is_counted_by_failure_class(runs: tuple[Run, Run]) -> None:
    Trial.objects.filter(cause="no_call").update(
        failure_class="no_tool_calls", signature="no_tool_calls · happy_path · $.ops"
    )
    page = get_failures(FailuresQuery(look="first"))
    rows = [(row.cause.code, row.count, count_linked_trials(row.query)) for row in page.heat_map.rows]
    assert rows == [("no_tool_calls", 2, 2), ("ASSERTION_FAILED", 2, 2)]
    group = next(group for group in page.groups.shown if group.path == "$.ops")
    assert (group.turn, group.count, count_linked_trials(group.query)) == ("", 2, 2)
    split = get_failures(FailuresQuery(look="first", by="scenario")).groups.shown
    assert {count_linked_trials(group.query) == group.count for group in split} == {True}


def test_failures_page_has_a_scope_for_imported_runs() -> None:
    make_failed_trial(make_run(imported=True), "elsewhere", "no_call")
    (row,) = get_failures(FailuresQuery(scope="imported")).heat_map.rows
    assert (row.count, count_linked_trials(row.query)) == (1, 1)


def test_failures_page_published_scope_shows_only_listed_failures(owner_client: Client) -> None:
    assert "No published snapshot" in read_html(owner_client.get("/failures/?scope=published"))
    snapshot = make_published_snapshot(("vendor/a", "default", 8, 10), ("vendor/b", "default", 10, 10))
    listed = [{"name": "TIMEOUT", "count": 1}, {"name": "happy_path", "count": 1}]
    snapshot.cells.filter(model="vendor/a").update(failures=listed)
    html = read_html(owner_client.get("/failures/?scope=published"))
    assert "<code>TIMEOUT</code>" in html
    assert "happy_path" not in html
    assert "means “not listed”, not “no failure”" in html


def test_failures_page_of_runs_marks_them_as_scope_and_names_causes(owner_client: Client) -> None:
    runs = [make_run() for _ in range(4)]
    make_failed_trial(runs[0], "a", "no_call")
    recompute_stale_cells()
    ids = [str(run.pk) for run in runs]
    for chosen, label in ((ids[:1], f"Run {ids[0]}"), (ids, "4 runs")):
        html = read_html(owner_client.get(f"/failures/?run={','.join(chosen)}"))
        switch = html.partition('aria-label="Scope"')[2].partition("</nav>")[0]
        assert switch.count("aria-current") == 1
        assert " ".join(switch.partition('aria-current="true"')[2].partition(">")[2].partition("<")[0].split()) == label
    seen = read_html(owner_client.get(f"/failures/?run={ids[0]}")).partition('id="seen"')[2]
    assert f">{load_causes()['no_call'].sentence}</a>" in seen


def test_failure_group_nearest_pass_prefers_the_same_model() -> None:
    run = make_run()
    make_trial(make_cell(make_config(run, make_model("other"))))
    make_trial(make_cell(make_config(run, make_model("a"), profile="calm")))
    make_failed_trial(run, "b", "no_call")
    trial = make_failed_trial(run, "a", "schema_type", path="$.x")
    recompute_stale_cells()
    found = {group.exemplar: group.nearest for group in get_failures(FailuresQuery(by="scenario")).groups.shown}
    assert Trial.objects.filter(pk=found[trial.pk] or 0, config__model_name="a").exists()


def test_failures_page_of_a_deleted_run_has_no_seen_causes(runs: tuple[Run, Run]) -> None:
    query = FailuresQuery(runs=(runs[0].pk,))
    assert get_failures(query).seen_causes
    Run.objects.filter(pk=runs[0].pk).update(deleted_at=timezone.now())
    assert not get_failures(query).seen_causes


def test_failures_page_of_one_run_counts_seen_causes_by_path(runs: tuple[Run, Run]) -> None:
    trial = runs[1].trials.filter(cause="schema_type").get()
    repeated_cause = {**trial.causes[0], "path": "$.ops[2].path", "mended": True, "count": 3}
    make_trial(trial.cell, "pass", causes=[repeated_cause], taxonomy=read_taxonomy_version())
    page = get_failures(FailuresQuery(runs=(runs[1].pk,)))
    seen_cause = next(cause for cause in page.seen_causes if cause.cause.code == "schema_type")
    assert (seen_cause.path, seen_cause.trials, seen_cause.occurrences, seen_cause.recovered_trials) == (
        "$.ops[].path",
        2,
        4,
        1,
    )
    assert count_linked_trials(seen_cause.query) == 2
    assert not get_failures(FailuresQuery()).seen_causes


def test_failures_page_separates_scopes_and_counts_unclassified() -> None:
    make_failed_trial(make_run(simulated=True), "persona", "no_call")
    make_failed_trial(make_run(imported=True), "elsewhere", "no_call")
    assert get_failures(FailuresQuery()).heat_map.rows == ()
    assert get_failures(FailuresQuery(scope="demo")).heat_map.rows[0].count == 1
    assert not get_failures(FailuresQuery(scope="demo")).uncounted_failures
    make_trial(make_cell(make_config(make_run())), "fail")
    assert get_failures(FailuresQuery()).uncounted_failures == 1


def test_failures_page_of_two_versions_counts_only_the_newest(runs: tuple[Run, Run], owner_client: Client) -> None:
    for _ in range(3):
        make_failed_trial(runs[0], "a", "schema_type", path="$.ops[].path", version=1)
    page = get_failures(FailuresQuery(runs=(runs[0].pk,)))
    assert (page.version, page.current_version, page.uncounted_failures, page.can_reclassify) == (3, 3, 3, True)
    row = next(row for row in page.heat_map.rows if row.cause.code == "schema_type")
    assert row.count == count_linked_trials(row.query) == 1
    cell = row.cells[[column.model for column in page.heat_map.columns].index("a")]
    assert cell is not None
    assert (cell.rate.k, cell.rate.n, count_linked_trials(cell.query)) == (1, 2, 1)
    cluster = next(group for group in page.groups.shown if group.cause and group.cause.code == "schema_type")
    assert cluster.count == count_linked_trials(cluster.query) == 1
    seen_cause = next(cause for cause in page.seen_causes if cause.cause.code == "schema_type")
    assert seen_cause.trials == count_linked_trials(seen_cause.query) == 1
    html = read_html(owner_client.get(f"/failures/?run={runs[0].pk}"))
    sentences = (
        "Only failures classified by version 3 of the table of causes are counted here. 3 failed trials are left"
    )
    assert sentences in " ".join(html.split())


def test_failures_page_of_an_old_version_only_names_it(owner_client: Client) -> None:
    run = make_run(imported=True)
    trial = make_failed_trial(run, "a", "no_call", version=1)
    recompute_stale_cells()
    page = get_failures(FailuresQuery(runs=(run.pk,)))
    assert (page.version, page.uncounted_failures, page.can_reclassify, page.heat_map.rows[0].count) == (1, 0, False, 1)
    html = read_html(owner_client.get(f"/failures/?run={run.pk}"))
    assert "The table of causes now has version 3. Only failures classified by version 1 of the table" in html
    assert "by version 1 of the table; now 3" in read_html(owner_client.get(f"/trials/{trial.pk}/"))


def test_trial_page_marks_a_recovered_problem_beside_the_cause(runs: tuple[Run, Run], owner_client: Client) -> None:
    trial = make_failed_trial(runs[0], "c", "no_call", turn=3)
    recovered = {**trial.causes[0], "code": "arguments_not_json", "mended": True}
    Trial.objects.filter(pk=trial.pk).update(causes=[recovered], sentence="Turn 1: it began badly.")
    html = read_html(owner_client.get(f"/trials/{trial.pk}/"))
    assert "$, recovered<" in html
    assert "no_call</code></a>, turn 3 ·" in html
    assert "Use another method, examples, or tool_choice required." in html


def test_failures_page_number_of_queries_is_bounded(
    runs: tuple[Run, Run], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(9):
        get_failures(FailuresQuery(runs=(runs[0].pk,)))


@pytest.mark.parametrize("query", ["scope=all", "run=x", "run=" + "9" * 500])
def test_failures_query_names_and_ignores_unreadable_values(query: str) -> None:
    failures_query = FailuresQuery.from_query(QueryDict(query))
    assert failures_query.ignored == (query.split("=")[0],)
    assert failures_query.query() == ""


def test_failures_pages_have_a_heat_map_and_every_cause(runs: tuple[Run, Run], owner_client: Client) -> None:
    html = read_html(owner_client.get("/failures/"))
    assert 'href="/failures/codes/#schema_type"' in html
    assert 'class="heat" style="--heat:' in html
    codes = read_html(owner_client.get("/failures/codes/"))
    assert all(f'id="{code}"' in codes for code in load_causes())
    assert sum(map(len, get_causes_by_group().values())) == len(load_causes())
    assert all(f'id="class-{row.code}"' in codes for row in load_classes())
    assert sum(map(len, get_classes_by_kind().values())) == len(load_classes())
    assert 'href="/policy/">Effective settings<' in codes


def test_trial_page_links_its_cause_to_the_table(runs: tuple[Run, Run], owner_client: Client) -> None:
    trial = runs[0].trials.filter(cause="no_call").get()
    html = read_html(owner_client.get(f"/trials/{trial.pk}/"))
    assert 'href="/failures/codes/#no_call"' in html
    assert f'href="/failures/codes/#class-{trial.failure_class}"' in html
    assert "The model answered in text although a call was still needed." in html
