"""Summary files of a report, by the case study's rules."""

import json
from typing import Any

import pytest

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.lab.report_fields import read_fields
from toolbench.lab.interchange.report.write import iter_report_files
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.models import Run
from toolbench.lab.results.decide.settings_export import get_settings_page

pytestmark = pytest.mark.django_db


def read_file(run: Run, name: str) -> Any:
    recompute_stale_cells()
    return json.loads(dict(iter_report_files(run.pk))[name])


def test_report_summary_has_every_field_of_the_case_study() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1, "fail": 4})
    summary = read_file(config.run, "summary.json")
    row = summary["models"][0]
    assert set(summary) == read_fields("summary") | {"toolbench"}
    assert set(row) == read_fields("model") | {"toolbench"}
    assert all(set(item) == read_fields("row") | {"toolbench"} for item in row["run_results"])
    assert [len(row["run_results"]), len(row["failure_samples"])] == [5, 3]
    assert (row["runs"], row["ok"], row["ok_rate"]) == (5, 1, 0.2)


@pytest.mark.parametrize(
    ("count", "p50", "p95"), [(1, 0, 0), (2, 1, 1), (4, 2, 3), (10, 5, 9), (20, 10, 19), (21, 10, 19), (50, 25, 47)]
)
def test_report_summary_percentiles_are_at_the_case_study_indexes(count: int, p50: int, p95: int) -> None:
    cell = make_cell(make_config(make_run()))
    outcomes = ("pass", "fail", "infra")
    for place in reversed(range(count)):
        make_trial(cell, outcomes[place % 3], duration_ms=1000.0 * place)
    row = read_file(cell.run, "summary.json")["models"][0]
    assert (row["ms_p50"], row["ms_p95"]) == (1000 * p50, 1000 * p95)


def test_report_summary_without_controls_has_zero_counts_and_null_rate() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1})
    row = read_file(config.run, "summary.json")["models"][0]
    assert (row["control_runs"], row["control_ok"], row["control_ms_p95"], row["control_ok_rate"]) == (0, 0, None, None)


def test_report_summary_separates_controls_but_not_in_percentiles() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config), duration_ms=100.0)
    make_trial(make_cell(config, "chat_only"), "fail", duration_ms=900.0)
    row = read_file(config.run, "summary.json")["models"][0]
    assert (row["tool_ok"], row["tool_runs"], row["control_ok"], row["control_runs"]) == (1, 1, 0, 1)
    assert (row["ms_p95"], row["tool_ms_p95"], row["control_ms_p95"]) == (900, 100, 900)


def test_report_summary_percentiles_never_mix_scenario_groups() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config), duration_ms=100.0)
    make_trial(make_cell(config, "chat_only"), duration_ms=200.0)
    make_trial(make_cell(config, "restraint_plain", scenario_group="restraint"), duration_ms=900.0)
    row = read_file(config.run, "summary.json")["models"][0]
    assert {row[name] for name in ("ms_p50", "ms_p95", "tool_ms_p50", "tool_ms_p95")} == {None}
    groups = row["toolbench"]["groups"]
    found = {name: (item["percentiles"]["ms_p95"], item["percentiles"]["tool_ms_p95"]) for name, item in groups.items()}
    assert found == {"tools": (200, 100), "restraint": (900, 900)}


def test_report_summary_has_both_rates_with_intervals() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 8, "fail": 2, "infra": 10})
    rates = read_file(config.run, "summary.json")["models"][0]["toolbench"]["rates"]["tools"]
    answered, delivered = rates["success_given_an_answer"], rates["delivered_success"]
    assert (answered["k"], answered["n"], answered["rate"]) == (8, 10, 0.8)
    assert (answered["low"], answered["high"]) == (0.4902, 0.9433)
    assert (delivered["k"], delivered["n"]) == (8, 20)


def test_report_summary_of_several_groups_has_no_pooled_rate() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 3, "fail": 1})
    make_trials(make_cell(config, "restraint_plain", scenario_group="restraint"), **{"fail": 4})
    make_trials(make_cell(config, "chat_only"), **{"pass": 2})
    summary = read_file(config.run, "summary.json")
    row = summary["models"][0]
    assert (row["ok"], row["runs"], row["ok_rate"], row["tool_ok_rate"]) == (5, 10, None, None)
    assert row["control_ok_rate"] == 1
    for entry in (row["toolbench"], summary["toolbench"]):
        assert (entry["rates"], "are not pooled" in entry["not_pooled"]) == (None, True)
        delivered = {name: group["rates"]["tools"]["delivered_success"] for name, group in entry["groups"].items()}
        assert {name: (rate["k"], rate["n"]) for name, rate in delivered.items()} == {
            "tools": (3, 4),
            "restraint": (0, 4),
        }
    assert row["toolbench"]["metrics"] is None
    assert row["toolbench"]["groups"]["restraint"]["metrics"]["delivered"]["n"] == 4


def test_report_summary_has_every_metric_with_its_denominator() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "pass", arguments_asked=3, arguments_right=2, first_token_ms=12.0)
    found = read_file(cell.run, "summary.json")["models"][0]["toolbench"]["metrics"]
    assert set(found) == set(METRICS)
    assert (found["arguments"]["k"], found["arguments"]["n"]) == (2, 3)
    assert found["arguments"]["of"] == METRICS["arguments"].denominator
    old_fields = {"of": METRICS["first_token"].denominator, "low": 12.0, "high": 12.0, "unit": "ms"}
    new_fields = {"first_token_ms_value": 12.0, "first_token_ms_low": None, "first_token_ms_high": None}
    assert found["first_token"] == old_fields | new_fields
    assert found["cost"]["low"] is None


def test_report_summary_of_deterministic_repeats_has_no_interval() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for _ in range(3):
        make_trial(cell, answer_hash="the same")
    rates = read_file(cell.run, "summary.json")["models"][0]["toolbench"]["rates"]["tools"]
    withheld = {"k": 3, "n": 3, "rate": 1.0, "low": None, "high": None, "interval": None}
    assert (rates["success_given_an_answer"], rates["delivered_success"]) == (withheld, withheld)


def test_report_summary_ok_is_the_case_study_verdict_if_there_is_one() -> None:
    config = make_config(make_run())
    make_trial(make_cell(config), "pass", parity_pass=False, category="ASSERTION_FAILED")
    make_trial(make_cell(config, "weather"), "pass", parity_pass=None)
    rows = read_file(config.run, "summary.json")["models"][0]["run_results"]
    assert [(row["scenario"], row["ok"]) for row in rows] == [("happy_path", False), ("weather", True)]


def test_report_summary_counts_categories_by_scenario_and_strategy() -> None:
    run = make_run()
    baseline, production = (make_config(run, strategy=name) for name in ("baseline", "production"))
    make_trials(make_cell(baseline), **{"pass": 1, "fail": 2})
    make_trial(make_cell(production), "infra", category="UPSTREAM_5XX")
    by_scenario = read_file(run, "summary_by_scenario.json")
    by_strategy = read_file(run, "summary_by_scenario_and_strategy.json")
    assert by_scenario["happy_path"] == {"runs": 4, "ok": 1, "errors": {"ASSERTION_FAILED": 2, "UPSTREAM_5XX": 1}}
    assert by_strategy["production"]["happy_path"] == {"runs": 1, "ok": 0, "errors": {"UPSTREAM_5XX": 1}}
    assert by_strategy["baseline"]["happy_path"]["runs"] == 3


def test_report_summary_omits_the_password_of_the_base_url() -> None:
    model = make_model()
    model.provider.base_url = "https://me:secret@example.test/api"
    model.provider.save()
    run = make_config(make_run(), model).run
    assert read_file(run, "summary.json")["base_url"] == "https://example.test/api"


def test_report_summary_repeats_the_request_of_the_run() -> None:
    request_json = {
        "profiles": ["default"],
        "tool_use_mode": "relaxed",
        "overrides": {"request_overrides": {"user": "me"}},
    }
    run = make_run(request=request_json, trials_per_cell=7)
    make_config(run, strategy="production!content_tag_tool_call_fallback")
    make_config(run, strategy="production+content_tag_tool_call_fallback")
    summary = read_file(run, "summary.json")
    assert (summary["tool_use_mode"], summary["trials_per_model"]) == ("relaxed", 7)
    assert summary["request_overrides"] == {"user": "me"}
    assert (summary["strategies"], summary["fallback_profiles"]) == (["production"], ["fallback_off", "fallback_on"])
    assert summary["fallback_matrix"] is True


def test_report_masks_stored_keys_in_the_provider_address() -> None:
    key = "sk-planted-0123456789"
    address = {"base_url": f"https://x.test/{key}", "api_prefix": f"/{key}/v1"}
    config = make_config(make_run(), model=make_model(provider=make_provider("Old", **address)))
    make_trials(make_cell(config), **{"pass": 1})
    files = dict(iter_report_files(config.run.pk))
    assert json.loads(files["summary.json"])["api_prefix"] == f"/{'*' * len(key)}/v1"
    page = get_settings_page(config.pk)
    assert page is not None
    assert not [name for name, text in files.items() if b"planted" in text]
    assert len(page.files) > 1
    assert not [read_file.file for read_file in page.files if "planted" in read_file.text]
