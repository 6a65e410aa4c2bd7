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


def compare(**parameters: object) -> Comparison:
    query = QueryDict("&".join(f"{name}={value}" for name, value in parameters.items()))
    return get_comparison(CompareQuery.from_query(query))


def make_run_cell(run: Run, scenario: str = "happy_path", **config: Any) -> Cell:
    return make_cell(make_config(run, **config), scenario)


def make_tried_run(passed: int, failed: int, **config: Any) -> Run:
    run = make_run()
    make_trials(make_run_cell(run, **config), **{"pass": passed, "fail": failed})
    return run


def make_drawn_trials(cell: Cell, outcomes: str) -> None:
    """Make a trial of a drawn instance for each letter: p for a pass, f for a failure."""
    for seed, letter in enumerate(outcomes):
        outcome = {"p": "pass", "f": "fail"}[letter]
        make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed)
    recompute_stale_cells()


def test_comparison_of_36_and_40_of_40_shows_no_difference() -> None:
    a, b = make_tried_run(36, 4), make_tried_run(40, 0)
    page = compare(a_run=a.pk, b_run=b.pk)
    assert page.whole.result_text == "no difference shown"
    assert page.whole.p == pytest.approx(0.1156, abs=1e-4)
    assert page.required_trials.points == 7
    assert page.required_trials.more > 0


def test_comparison_of_70_and_95_of_100_differs() -> None:
    page = compare(a_run=make_tried_run(70, 30).pk, b_run=make_tried_run(95, 5).pk)
    assert page.whole.differs
    assert page.whole.result_text == "better"
    assert page.whole.difference is not None
    assert page.whole.difference.value == pytest.approx(0.25)


def test_comparison_of_published_wording_is_stratified() -> None:
    assert compare(a_run=make_tried_run(20, 0).pk, b_run=make_tried_run(20, 0).pk).how == "stratified"


def test_comparison_pairs_shared_instances_and_counts_changes() -> None:
    run = make_run(instance_kind="drawn")
    make_drawn_trials(make_run_cell(run, method="native"), "ppppppppppff")
    make_drawn_trials(make_run_cell(run, method="text_json"), "pppppppppffpp")
    page = compare(run=run.pk, a_method="native", b_method="text_json")
    assert page.how == "paired"
    assert (page.outcome_changes.regressed, page.outcome_changes.fixed, page.outcome_changes.still_failing) == (1, 1, 1)
    assert (page.outcome_changes.still_passing, page.outcome_changes.new, page.outcome_changes.removed) == (9, 1, 0)
    assert page.whole.first.n == page.whole.second.n == 12


def test_comparison_of_shared_instances_can_be_stratified() -> None:
    run = make_run(instance_kind="drawn")
    make_drawn_trials(make_run_cell(run, method="native"), "p" * 12)
    make_drawn_trials(make_run_cell(run, method="text_json"), "p" * 12)
    page = compare(run=run.pk, a_method="native", b_method="text_json", how="stratified")
    assert page.how == "stratified"


def test_comparison_omits_strata_of_one_side_with_a_warning() -> None:
    a, b = make_tried_run(10, 0), make_tried_run(10, 0)
    make_trials(make_cell(a.configs.get(), "missing_workspace_id"), **{"fail": 10})
    page = compare(a_run=a.pk, b_run=b.pk)
    assert [row.scenario for row in page.rows] == ["happy_path"]
    assert page.whole.first.n == 10
    assert "Scenarios or configurations that only one side has are omitted. Their number: 1." in page.warnings


@pytest.mark.parametrize("alone_fields", [{"scenario": "guard"}, {"scenario": "happy_path", "model": "vendor/other"}])
def test_comparison_figures_exclude_trials_of_one_side_only(alone_fields: dict[str, str]) -> None:
    """Times, cost, tokens, retries and counts of trials are those of the strata that success compares."""
    a, b = make_tried_run(10, 0), make_tried_run(10, 0)
    shared_only = compare(a_run=a.pk, b_run=b.pk)
    config = make_config(a, model=make_model(alone_fields["model"])) if "model" in alone_fields else a.configs.get()
    slow_fields: dict[str, Any] = {"duration_ms": 90_000, "input_tokens": 70_000, "retries": 3}
    for _ in range(10):
        make_trial(make_cell(config, alone_fields["scenario"]) if _ == 0 else config.cells.latest("pk"), **slow_fields)
    page = compare(a_run=a.pk, b_run=b.pk)
    assert page.counts.left_out == 1
    for name in ("trials", "tokens", "cost", "distinct_answers", "retries_by_scenario", "config_ids"):
        assert getattr(page.sides[0], name) == getattr(shared_only.sides[0], name), name
    assert [item.difference for item in page.secondary.times] == [
        item.difference for item in shared_only.secondary.times
    ]
    assert export_comparison(page.query).rows == export_comparison(shared_only.query).rows


def test_comparison_strata_are_configurations_unless_they_differ() -> None:
    a, b = make_run(), make_run()
    for run in (a, b):
        for model in ("vendor/one", "vendor/two"):
            make_trials(make_run_cell(run, model=make_model(model)), **{"pass": 5})
    assert {row.label for row in compare(a_run=a.pk, b_run=b.pk).rows} == {"vendor/one", "vendor/two"}
    page = compare(run=a.pk, a_model="vendor/one", b_model="vendor/two")
    assert page.counts.differing == ("model",)
    assert [row.label for row in page.rows] == [""]


def test_comparison_rows_have_simultaneous_intervals() -> None:
    """A difference of +20 to +83 points alone is not significant after the correction."""
    a, b = make_run(), make_run()
    scenarios = ("happy_path", *(f"scenario_{number}" for number in range(11)))
    for run, passed in ((a, 2), (b, 9)):
        config = make_config(run)
        make_trials(make_cell(config, scenarios[0]), **{"pass": passed, "fail": 10 - passed})
        for scenario in scenarios[1:]:
            make_trials(make_cell(config, scenario), **{"pass": 5, "fail": 5})
    first = compare(a_run=a.pk, b_run=b.pk).rows[0].compared
    assert first.difference is not None
    assert first.difference.comparisons == 12
    assert first.p == pytest.approx(12 * first.difference.unadjusted_p_value)
    assert first.result_text == "no difference shown"
    assert first.difference.low < 0 < first.difference.with_comparisons(1).low


def test_comparison_results_agree_with_their_intervals() -> None:
    """Check rows, calls, times, cost and the whole of random comparisons."""
    random_source = random.Random(3)
    for _ in range(4):
        a, b = make_run(), make_run()
        for run in (a, b):
            config = make_config(run)
            for number in range(random_source.randint(1, 3)):
                cell = make_cell(config, f"scenario_{number}")
                for _ in range(random_source.choice([4, 12])):
                    outcome = random_source.choices(["pass", "fail"], [0.9, 0.1 if run is a else 2.0])[0]
                    valid = random_source.choices([1, 0], [9, 1 if run is a else 9])[0]
                    make_trial(cell, outcome, calls=1, valid_calls=valid, enum_calls=1 - valid)
        page = compare(a_run=a.pk, b_run=b.pk)
        call_comparisons = [call.compared for call in page.secondary.calls]
        for group in ([page.whole], [row.compared for row in page.rows], call_comparisons):
            for comparison in group:
                assert_agrees(comparison)
        sizes = {item.difference.comparisons for item in call_comparisons if item.difference}
        sizes |= {item.difference.comparisons for item in page.secondary.times if item.difference}
        assert sizes == {page.secondary.comparisons}


def assert_agrees(comparison: RateComparison) -> None:
    difference = comparison.difference
    if difference is None:
        assert not comparison.differs
        return
    assert (
        comparison.differs
        == (not difference.low <= 0 <= difference.high)
        == (comparison.p is not None and comparison.p <= ALPHA)
    )
    assert comparison.differs == (comparison.result_text in ("better", "worse"))


def test_comparison_counts_infra_errors_in_end_to_end_success_only() -> None:
    a, b = make_run(), make_run()
    make_trials(make_run_cell(a), **{"pass": 20})
    make_trials(make_run_cell(b), **{"pass": 20, "infra": 20})
    assert not compare(a_run=a.pk, b_run=b.pk).whole.differs
    assert compare(a_run=a.pk, b_run=b.pk, metric="delivered").whole.result_text == "worse"


def test_comparison_withholds_result_of_deterministic_answers() -> None:
    a, b = make_run(), make_run()
    for run, outcome in ((a, "pass"), (b, "fail")):
        cell = make_cell(make_config(run), deterministic=True)
        for _ in range(10):
            make_trial(cell, outcome, answer_hash="same")
    page = compare(a_run=a.pk, b_run=b.pk)
    assert page.whole.withheld
    assert page.whole.difference is None
    assert page.sides[0].distinct_answers == 1


def test_comparison_clusters_trials_of_one_instance() -> None:
    a, b = make_run(instance_kind="drawn"), make_run(instance_kind="drawn")
    for run in (a, b):
        cell = make_run_cell(run)
        for _ in range(10):
            make_drawn_trials(cell, "pf")
    page = compare(a_run=a.pk, b_run=b.pk)
    assert page.how == "stratified"
    assert page.whole.clustered
    assert page.whole.first.low < 0.1


def test_comparison_of_sequential_side_is_unpaired_and_anytime_valid() -> None:
    run = make_run(instance_kind="drawn")
    make_drawn_trials(make_run_cell(run, method="native"), "p" * 12)
    make_drawn_trials(make_cell(make_config(run, method="text_json"), error=0.05), "f" * 12)
    page = compare(run=run.pk, a_method="native", b_method="text_json")
    assert page.how == "stratified"
    assert (page.whole.first.interval_name, page.whole.second.interval_name) == ("Wilson, 95 %", "anytime-valid, 95 %")
    assert page.whole.sequential
    assert page.whole.result_text == "worse"
    assert any(warning.startswith("A side used sequential stopping") for warning in page.warnings)


def test_comparison_counts_fewer_violations_as_better() -> None:
    a, b = make_run(), make_run()
    for run, wrong in ((a, 1), (b, 0)):
        cell = make_run_cell(run)
        for _ in range(20):
            make_trial(cell, calls=2, valid_calls=2 - wrong, enum_calls=wrong)
    page = compare(a_run=a.pk, b_run=b.pk)
    calls = {call.metric.name: call.compared for call in page.secondary.calls}
    assert (calls["enum_calls"].first.k, calls["enum_calls"].first.n) == (20, 40)
    assert (calls["schema"].result_text, calls["enum_calls"].result_text) == ("better", "better")
    assert calls["missing_calls"].result_text == "no difference shown"
    assert {"structured", "arguments", "type_calls", "range_calls", "extra_calls"} < set(calls)


def test_comparison_refuses_sides_that_share_trials() -> None:
    run = make_tried_run(10, 0)
    page = compare(run=run.pk, a_method="native", b_profile="default")
    assert page.shared_trials == 10
    assert not page.comparable


def test_comparison_includes_simulated_runs_only_if_named() -> None:
    run = make_run(simulated=True)
    make_trials(make_run_cell(run, method="native"), **{"pass": 5})
    make_trials(make_run_cell(run, method="text_json"), **{"pass": 5})
    assert not compare(a_method="native", b_method="text_json").comparable
    named = compare(run=run.pk, a_method="native", b_method="text_json")
    assert named.comparable
    assert "Simulated" in named.warnings[0]


def test_comparison_warnings_name_differences_of_the_sides() -> None:
    a, b = make_run(), make_run()
    early = timezone.now() - timedelta(hours=3)
    make_trial(make_run_cell(a), started_at=early, concurrency=2, engine_version="1")
    make_trial(make_run_cell(b, policy_hash="other"), concurrency=8, engine_version="2", client_lag_ms=99.0)
    warning_text = " ".join(compare(a_run=a.pk, b_run=b.pk).warnings)
    for words in (
        "hour apart",
        "concurrency (median 2 and 8 trials at once)",
        "Frozen settings differ",
        "versions of the engine",
        "overloaded",
    ):
        assert words in warning_text


def test_comparison_warning_uses_the_median_concurrency() -> None:
    a, b = make_run(), make_run()
    for run, concurrencies in ((a, (8, 8, 200)), (b, (9, 9, 9))):
        cell = make_run_cell(run)
        for concurrency in concurrencies:
            make_trial(cell, concurrency=concurrency)
    assert "concurrency" not in " ".join(compare(a_run=a.pk, b_run=b.pk).warnings)


def test_comparison_of_equal_engine_versions_has_no_warning() -> None:
    runs = [make_run(), make_run()]
    for run, version in zip(runs, json.loads(EQUAL_VERSIONS_PATH.read_bytes())[0]["versions"], strict=True):
        make_trial(make_run_cell(run), engine_version=version)
    assert compare(a_run=runs[0].pk, b_run=runs[1].pk).warnings == ()


def test_comparison_with_an_empty_side_has_no_warnings() -> None:
    run = make_tried_run(3, 0)
    for sides in (
        {"a_run": run.pk, "b_run": run.pk + 1},
        {"a_run": run.pk, "b_run": make_run(instance_kind="drawn").pk},
    ):
        assert compare(**sides).warnings == ()


def test_comparison_excludes_controls_and_other_groups() -> None:
    a, b = make_tried_run(10, 0), make_tried_run(10, 0)
    for run in (a, b):
        make_trials(make_cell(run.configs.get(), "chat_only"), **{"fail": 10})
        make_trials(make_cell(run.configs.get(), "weather", scenario_group="weather"), **{"fail": 10})
    page = compare(a_run=a.pk, b_run=b.pk)
    assert (page.whole.first.k, page.whole.first.n) == (10, 10)
    assert set(page.counts.groups) == {"tools", "weather"}


def test_comparison_number_of_queries_is_bounded(django_assert_max_num_queries: object) -> None:
    a, b = make_tried_run(10, 0), make_tried_run(9, 1)
    with django_assert_max_num_queries(15):  # type: ignore[operator]  # pytest-django types the fixture loosely
        compare(a_run=a.pk, b_run=b.pk)


def make_versions(run: Run, passed: dict[int, int], scenario: str = "happy_path", **config: Any) -> None:
    """Make ten trials of each version, with this number of passes."""
    for version, count in passed.items():
        cell = make_cell(make_config(run, **config), scenario, scenario_version=version)
        make_trials(cell, **{"pass": count, "fail": 10 - count})


def get_version_warning(page: Comparison) -> str:
    found = [warning for warning in page.warnings if warning.startswith("Some versions of scenarios are omitted")]
    assert len(found) <= 1
    assert set(found) <= set(export_comparison(page.query).notes)
    return "".join(found)


def test_comparison_without_shared_version_compares_the_newest() -> None:
    """Versions are numbers: 10 is newer than 9."""
    a, b = make_run(), make_run()
    make_versions(a, {9: 0, 10: 6})
    make_versions(b, {11: 8})
    page = compare(a_run=a.pk, b_run=b.pk)
    assert page.counts.differing == ("version",)
    assert [(row.label, row.compared.first.k, row.compared.first.n) for row in page.rows] == [
        ("version 10 and 11", 6, 10)
    ]
    assert (page.whole.first.k, page.whole.first.n, page.whole.second.k, page.whole.second.n) == (6, 10, 8, 10)
    assert page.sides[0].trials == 10
    assert get_version_warning(page).endswith(": happy_path version 9 (first side).")


def test_comparison_matches_versions_for_each_scenario() -> None:
    """Equal version numbers of two different scenarios are not a shared version."""
    a, b = make_run(), make_run()
    make_versions(a, {1: 1, 2: 2})
    make_versions(b, {3: 3})
    make_versions(a, {3: 4}, "guard")
    make_versions(b, {1: 5, 2: 6}, "guard")
    page = compare(a_run=a.pk, b_run=b.pk)
    rows = {row.scenario: (row.compared.first.k, row.compared.second.k) for row in page.rows}
    assert rows == {"happy_path": (2, 3), "guard": (4, 6)}
    assert page.whole.first.n == page.whole.second.n == 20
    warning_text = get_version_warning(page)
    assert warning_text.endswith(": happy_path version 1 (first side), guard version 1 (second side).")
    assert page.counts.left_out == 0


def test_comparison_keeps_shared_versions_as_separate_strata() -> None:
    a, b = make_run(), make_run()
    make_versions(a, {1: 1, 2: 2, 3: 3})
    make_versions(b, {1: 4, 2: 5})
    page = compare(a_run=a.pk, b_run=b.pk)
    rows = {row.label: (row.compared.first.k, row.compared.second.k) for row in page.rows}
    assert rows == {"version 1": (1, 4), "version 2": (2, 5)}
    assert page.sides[0].trials == 20
    assert get_version_warning(page).endswith(": happy_path version 3 (first side).")
    assert page.counts.left_out == 0


def test_comparison_omits_and_names_unshared_scenario_versions() -> None:
    a, b = make_run(), make_run()
    for run, version in ((a, 1), (b, 2)):
        make_versions(run, {version: 5})
        make_versions(run, {1: 5}, "case-of-a-user")
    page = compare(a_run=a.pk, b_run=b.pk)
    assert [row.scenario for row in page.rows] == ["case-of-a-user"]
    assert get_version_warning(page).endswith(
        ": happy_path version 1 (first side), happy_path version 2 (second side)."
    )


def test_comparison_chooses_the_newest_version_for_each_stratum() -> None:
    """The newest version is chosen for each stratum: another model's older version is not compared."""
    a, b = make_run(), make_run()
    make_versions(a, {1: 5})
    make_versions(a, {2: 5}, model=make_model("vendor/other"))
    make_versions(b, {3: 5})
    page = compare(a_run=a.pk, b_run=b.pk)
    assert [(row.compared.first.n, row.compared.second.n) for row in page.rows] == [(10, 10)]
    assert get_version_warning(page).endswith(": happy_path version 2 (first side).")


def test_comparison_excludes_trials_of_another_prompt_in_one_cell() -> None:
    a, b = make_run(), make_run()
    cells = [make_run_cell(a), make_run_cell(b)]
    for cell in cells:
        make_trial(cell, prompt_version="1")
    make_trial(cells[0], prompt_version="0")
    recompute_stale_cells()
    page = compare(a_run=a.pk, b_run=b.pk)
    assert (page.whole.first.n, page.sides[0].trials) == (1, 1)
