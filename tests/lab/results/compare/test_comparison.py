"""Comparison of two sides: pairing, results, secondary metrics and warnings."""

import json
import random
from datetime import timedelta
from typing import Any

import pytest
from django.http import QueryDict
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.evals.statistics.differences import ALPHA
from toolbench.lab.engine_version import EQUAL_VERSIONS_PATH
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.statistics import RateComparison

pytestmark = pytest.mark.django_db


def compared(**asked: object) -> Comparison:
    query = QueryDict("&".join(f"{name}={value}" for name, value in asked.items()))
    return get_comparison(CompareQuery.from_query(query))


def cell_of(run: Run, scenario: str = "happy_path", **config: Any) -> Cell:
    return make_cell(make_config(run, **config), scenario)


def tried(passed: int, failed: int, **config: Any) -> Run:
    run = make_run()
    make_trials(cell_of(run, **config), **{"pass": passed, "fail": failed})
    return run


def met(cell: Cell, outcomes: str) -> None:
    """Make a run with a drawn instance for each letter: p for a pass, f for a failure."""
    for seed, letter in enumerate(outcomes):
        outcome = {"p": "pass", "f": "fail"}[letter]
        make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed)
    recompute_stale_cells()


def test_forty_of_forty_and_thirty_six_of_forty_show_no_difference() -> None:
    a, b = tried(36, 4), tried(40, 0)
    page = compared(a_run=a.pk, b_run=b.pk)
    assert page.whole.result_text == "no difference shown"
    assert page.whole.p == pytest.approx(0.1156, abs=1e-4)
    assert page.required_trials.points == 7
    assert page.required_trials.more > 0


def test_70_and_95_of_100_differ() -> None:
    page = compared(a_run=tried(70, 30).pk, b_run=tried(95, 5).pk)
    assert page.whole.differs
    assert page.whole.result_text == "better"
    assert page.whole.difference is not None
    assert page.whole.difference.value == pytest.approx(0.25)


def test_repeats_of_the_published_wording_are_never_paired() -> None:
    assert compared(a_run=tried(20, 0).pk, b_run=tried(20, 0).pk).how == "stratified"


def test_shared_instances_are_paired_and_counted_by_change() -> None:
    run = make_run(instance_kind="drawn")
    met(cell_of(run, method="native"), "ppppppppppff")
    met(cell_of(run, method="text_json"), "pppppppppffpp")
    page = compared(run=run.pk, a_method="native", b_method="text_json")
    assert page.how == "paired"
    assert (page.outcome_changes.regressed, page.outcome_changes.fixed, page.outcome_changes.still_failing) == (1, 1, 1)
    assert (page.outcome_changes.still_passing, page.outcome_changes.new, page.outcome_changes.removed) == (9, 1, 0)
    assert page.whole.first.n == page.whole.second.n == 12


def test_stratified_comparison_can_be_chosen_for_shared_instances() -> None:
    run = make_run(instance_kind="drawn")
    met(cell_of(run, method="native"), "p" * 12)
    met(cell_of(run, method="text_json"), "p" * 12)
    page = compared(run=run.pk, a_method="native", b_method="text_json", how="stratified")
    assert page.how == "stratified"


def test_only_strata_that_both_sides_have_are_compared() -> None:
    a, b = tried(10, 0), tried(10, 0)
    make_trials(make_cell(a.configs.get(), "missing_workspace_id"), **{"fail": 10})
    page = compared(a_run=a.pk, b_run=b.pk)
    assert [row.scenario for row in page.rows] == ["happy_path"]
    assert page.whole.first.n == 10
    assert "Scenarios or configurations that only one side has, omitted: 1." in page.warnings


@pytest.mark.parametrize("alone", [{"scenario": "guard"}, {"scenario": "happy_path", "model": "vendor/other"}])
def test_no_figure_is_of_trials_that_only_one_side_has(alone: dict[str, str]) -> None:
    """Times, cost, tokens, retries and counts of trials are those of the strata that success compares."""
    a, b = tried(10, 0), tried(10, 0)
    plain = compared(a_run=a.pk, b_run=b.pk)
    config = make_config(a, model=make_model(alone["model"])) if "model" in alone else a.configs.get()
    slow: dict[str, Any] = {"duration_ms": 90_000, "input_tokens": 70_000, "retries": 3}
    for _ in range(10):
        make_trial(make_cell(config, alone["scenario"]) if _ == 0 else config.cells.latest("pk"), **slow)
    page = compared(a_run=a.pk, b_run=b.pk)
    assert page.counts.left_out == 1
    for name in ("trials", "tokens", "cost", "distinct_answers", "retries_by_scenario", "config_ids"):
        assert getattr(page.sides[0], name) == getattr(plain.sides[0], name), name
    assert [item.difference for item in page.secondary.times] == [item.difference for item in plain.secondary.times]
    assert export_comparison(page.query).rows == export_comparison(plain.query).rows


def test_configurations_are_strata_unless_they_are_what_is_compared() -> None:
    a, b = make_run(), make_run()
    for run in (a, b):
        for model in ("vendor/one", "vendor/two"):
            make_trials(cell_of(run, model=make_model(model)), **{"pass": 5})
    assert {row.label for row in compared(a_run=a.pk, b_run=b.pk).rows} == {"vendor/one", "vendor/two"}
    page = compared(run=a.pk, a_model="vendor/one", b_model="vendor/two")
    assert page.counts.differing == ("model",)
    assert [row.label for row in page.rows] == [""]


def test_rows_shown_together_have_simultaneous_intervals() -> None:
    """A difference of +20 to +83 points alone is not significant after the correction."""
    a, b = make_run(), make_run()
    scenarios = ("happy_path", *(f"scenario_{number}" for number in range(11)))
    for run, passed in ((a, 2), (b, 9)):
        config = make_config(run)
        make_trials(make_cell(config, scenarios[0]), **{"pass": passed, "fail": 10 - passed})
        for scenario in scenarios[1:]:
            make_trials(make_cell(config, scenario), **{"pass": 5, "fail": 5})
    first = compared(a_run=a.pk, b_run=b.pk).rows[0].compared
    assert first.difference is not None
    assert first.difference.comparisons == 12
    assert first.p == pytest.approx(12 * first.difference.unadjusted_p_value)
    assert first.result_text == "no difference shown"
    assert first.difference.low < 0 < first.difference.with_comparisons(1).low


def test_every_verdict_of_the_page_is_that_of_its_interval() -> None:
    """Check rows, calls, times, cost and the whole of random comparisons."""
    drawn = random.Random(3)
    for _ in range(4):
        a, b = make_run(), make_run()
        for run in (a, b):
            config = make_config(run)
            for number in range(drawn.randint(1, 3)):
                cell = make_cell(config, f"scenario_{number}")
                for _ in range(drawn.choice([4, 12])):
                    outcome = drawn.choices(["pass", "fail"], [0.9, 0.1 if run is a else 2.0])[0]
                    valid = drawn.choices([1, 0], [9, 1 if run is a else 9])[0]
                    make_trial(cell, outcome, calls=1, valid_calls=valid, enum_calls=1 - valid)
        page = compared(a_run=a.pk, b_run=b.pk)
        beside = [call.compared for call in page.secondary.calls]
        for family in ([page.whole], [row.compared for row in page.rows], beside):
            for one in family:
                assert_agrees(one)
        sizes = {item.difference.comparisons for item in beside if item.difference}
        sizes |= {item.difference.comparisons for item in page.secondary.times if item.difference}
        assert sizes == {page.secondary.comparisons}


def assert_agrees(one: RateComparison) -> None:
    found = one.difference
    if found is None:
        assert not one.differs
        return
    assert one.differs == (not found.low <= 0 <= found.high) == (one.p is not None and one.p <= ALPHA)
    assert one.differs == (one.result_text in ("better", "worse"))


def test_infrastructure_errors_count_in_end_to_end_success_only() -> None:
    a, b = make_run(), make_run()
    make_trials(cell_of(a), **{"pass": 20})
    make_trials(cell_of(b), **{"pass": 20, "infra": 20})
    assert not compared(a_run=a.pk, b_run=b.pk).whole.differs
    assert compared(a_run=a.pk, b_run=b.pk, metric="delivered").whole.result_text == "worse"


def test_equal_answers_of_a_deterministic_endpoint_are_withheld() -> None:
    a, b = make_run(), make_run()
    for run, outcome in ((a, "pass"), (b, "fail")):
        cell = make_cell(make_config(run), deterministic=True)
        for _ in range(10):
            make_trial(cell, outcome, answer_hash="same")
    page = compared(a_run=a.pk, b_run=b.pk)
    assert page.whole.withheld
    assert page.whole.difference is None
    assert page.sides[0].distinct_answers == 1


def test_trials_of_one_instance_are_not_counted_as_independent() -> None:
    a, b = make_run(instance_kind="drawn"), make_run(instance_kind="drawn")
    for run in (a, b):
        cell = cell_of(run)
        for _ in range(10):
            met(cell, "pf")
    page = compared(a_run=a.pk, b_run=b.pk)
    assert page.how == "stratified"
    assert page.whole.clustered
    assert page.whole.first.low < 0.1


def test_sequential_side_is_not_paired_and_has_anytime_valid_intervals() -> None:
    run = make_run(instance_kind="drawn")
    met(cell_of(run, method="native"), "p" * 12)
    met(make_cell(make_config(run, method="text_json"), error=0.05), "f" * 12)
    page = compared(run=run.pk, a_method="native", b_method="text_json")
    assert page.how == "stratified"
    assert (page.whole.first.interval_name, page.whole.second.interval_name) == ("Wilson, 95 %", "anytime-valid, 95 %")
    assert page.whole.sequential
    assert page.whole.result_text == "worse"
    assert any(warning.startswith("These sides used sequential stopping") for warning in page.warnings)


def test_fewer_violations_are_better() -> None:
    a, b = make_run(), make_run()
    for run, wrong in ((a, 1), (b, 0)):
        cell = cell_of(run)
        for _ in range(20):
            make_trial(cell, calls=2, valid_calls=2 - wrong, enum_calls=wrong)
    page = compared(a_run=a.pk, b_run=b.pk)
    calls = {call.metric.name: call.compared for call in page.secondary.calls}
    assert (calls["enum_calls"].first.k, calls["enum_calls"].first.n) == (20, 40)
    assert (calls["schema"].result_text, calls["enum_calls"].result_text) == ("better", "better")
    assert calls["missing_calls"].result_text == "no difference shown"
    assert {"structured", "arguments", "type_calls", "range_calls", "extra_calls"} < set(calls)


def test_sides_that_share_trials_are_not_compared() -> None:
    run = tried(10, 0)
    page = compared(run=run.pk, a_method="native", b_profile="default")
    assert page.shared_trials == 10
    assert not page.comparable


def test_simulated_runs_take_part_only_when_they_are_named() -> None:
    run = make_run(simulated=True)
    make_trials(cell_of(run, method="native"), **{"pass": 5})
    make_trials(cell_of(run, method="text_json"), **{"pass": 5})
    assert not compared(a_method="native", b_method="text_json").comparable
    named = compared(run=run.pk, a_method="native", b_method="text_json")
    assert named.comparable
    assert "Simulated" in named.warnings[0]


def test_warnings_name_the_differences_of_the_sides() -> None:
    a, b = make_run(), make_run()
    early = timezone.now() - timedelta(hours=3)
    make_trial(cell_of(a), started_at=early, concurrency=2, engine_version="1")
    make_trial(cell_of(b, policy_hash="other"), concurrency=8, engine_version="2", client_lag_ms=99.0)
    said = " ".join(compared(a_run=a.pk, b_run=b.pk).warnings)
    for words in (
        "hour apart",
        "concurrency (median 2 and 8 trials at once)",
        "Frozen settings differ",
        "versions of the engine",
        "overloaded",
    ):
        assert words in said


def test_comparison_uses_the_median_concurrency() -> None:
    a, b = make_run(), make_run()
    for run, others in ((a, (8, 8, 200)), (b, (9, 9, 9))):
        cell = cell_of(run)
        for concurrency in others:
            make_trial(cell, concurrency=concurrency)
    assert "concurrency" not in " ".join(compared(a_run=a.pk, b_run=b.pk).warnings)


def test_comparison_of_equal_engine_versions_has_no_warning() -> None:
    runs = [make_run(), make_run()]
    for run, version in zip(runs, json.loads(EQUAL_VERSIONS_PATH.read_bytes())[0]["versions"], strict=True):
        make_trial(cell_of(run), engine_version=version)
    assert compared(a_run=runs[0].pk, b_run=runs[1].pk).warnings == ()


def test_side_without_trials_has_no_warnings() -> None:
    run = tried(3, 0)
    for sides in (
        {"a_run": run.pk, "b_run": run.pk + 1},
        {"a_run": run.pk, "b_run": make_run(instance_kind="drawn").pk},
    ):
        assert compared(**sides).warnings == ()


def test_controls_and_other_groups_are_never_pooled_with_the_tools() -> None:
    a, b = tried(10, 0), tried(10, 0)
    for run in (a, b):
        make_trials(make_cell(run.configs.get(), "chat_only"), **{"fail": 10})
        make_trials(make_cell(run.configs.get(), "weather", scenario_group="weather"), **{"fail": 10})
    page = compared(a_run=a.pk, b_run=b.pk)
    assert (page.whole.first.k, page.whole.first.n) == (10, 10)
    assert set(page.counts.groups) == {"tools", "weather"}


def test_number_of_queries_does_not_grow(django_assert_max_num_queries: object) -> None:
    a, b = tried(10, 0), tried(9, 1)
    with django_assert_max_num_queries(15):  # type: ignore[operator]  # pytest-django types the fixture loosely
        compared(a_run=a.pk, b_run=b.pk)


def in_versions(run: Run, passed: dict[int, int], scenario: str = "happy_path", **config: Any) -> None:
    """Make ten trials of each version, with this number of passes."""
    for version, count in passed.items():
        cell = make_cell(make_config(run, **config), scenario, scenario_version=version)
        make_trials(cell, **{"pass": count, "fail": 10 - count})


def said_of_versions(page: Comparison) -> str:
    found = [warning for warning in page.warnings if warning.startswith("Omitted, since the other side has")]
    assert len(found) <= 1
    assert set(found) <= set(export_comparison(page.query).notes)
    return "".join(found)


def test_versions_none_shared_newest_of_each_side_is_compared() -> None:
    """Versions are numbers: 10 is newer than 9."""
    a, b = make_run(), make_run()
    in_versions(a, {9: 0, 10: 6})
    in_versions(b, {11: 8})
    page = compared(a_run=a.pk, b_run=b.pk)
    assert page.counts.differing == ("version",)
    assert [(row.label, row.compared.first.k, row.compared.first.n) for row in page.rows] == [
        ("version 10 and 11", 6, 10)
    ]
    assert (page.whole.first.k, page.whole.first.n, page.whole.second.k, page.whole.second.n) == (6, 10, 8, 10)
    assert page.sides[0].trials == 10
    assert said_of_versions(page).endswith(": happy_path version 9 (first side).")


def test_versions_are_matched_for_each_scenario() -> None:
    """Equal version numbers of two different scenarios are not a shared version."""
    a, b = make_run(), make_run()
    in_versions(a, {1: 1, 2: 2})
    in_versions(b, {3: 3})
    in_versions(a, {3: 4}, "guard")
    in_versions(b, {1: 5, 2: 6}, "guard")
    page = compared(a_run=a.pk, b_run=b.pk)
    rows = {row.scenario: (row.compared.first.k, row.compared.second.k) for row in page.rows}
    assert rows == {"happy_path": (2, 3), "guard": (4, 6)}
    assert page.whole.first.n == page.whole.second.n == 20
    said = said_of_versions(page)
    assert said.endswith(": happy_path version 1 (first side), guard version 1 (second side).")
    assert page.counts.left_out == 0


def test_versions_that_both_sides_have_stay_separate_strata() -> None:
    a, b = make_run(), make_run()
    in_versions(a, {1: 1, 2: 2, 3: 3})
    in_versions(b, {1: 4, 2: 5})
    page = compared(a_run=a.pk, b_run=b.pk)
    rows = {row.label: (row.compared.first.k, row.compared.second.k) for row in page.rows}
    assert rows == {"version 1": (1, 4), "version 2": (2, 5)}
    assert page.sides[0].trials == 20
    assert said_of_versions(page).endswith(": happy_path version 3 (first side).")
    assert page.counts.left_out == 0


def test_versions_of_one_scenario_alone_differ_and_are_named() -> None:
    a, b = make_run(), make_run()
    for run, version in ((a, 1), (b, 2)):
        in_versions(run, {version: 5})
        in_versions(run, {1: 5}, "case-of-a-user")
    page = compared(a_run=a.pk, b_run=b.pk)
    assert [row.scenario for row in page.rows] == ["case-of-a-user"]
    assert said_of_versions(page).endswith(": happy_path version 1 (first side), happy_path version 2 (second side).")


def test_version_of_one_side_does_not_hide_shared_versions() -> None:
    """The newest version is chosen for each stratum: another model's older version is not compared."""
    a, b = make_run(), make_run()
    in_versions(a, {1: 5})
    in_versions(a, {2: 5}, model=make_model("vendor/other"))
    in_versions(b, {3: 5})
    page = compared(a_run=a.pk, b_run=b.pk)
    assert [(row.compared.first.n, row.compared.second.n) for row in page.rows] == [(10, 10)]
    assert said_of_versions(page).endswith(": happy_path version 2 (first side).")


def test_side_trials_of_another_prompt_in_the_same_cell_stay_out() -> None:
    a, b = make_run(), make_run()
    cells = [cell_of(a), cell_of(b)]
    for cell in cells:
        make_trial(cell, prompt_version="1")
    make_trial(cells[0], prompt_version="0")
    recompute_stale_cells()
    page = compared(a_run=a.pk, b_run=b.pk)
    assert (page.whole.first.n, page.sides[0].trials) == (1, 1)
