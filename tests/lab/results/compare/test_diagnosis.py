"""Diagnosis of one model at two providers, and the suggested preset."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from toolbench.engine.policy.presets import list_preset_names
from toolbench.evals.causes.table import load_class_presets
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.models import Cell, Preset, RunConfig, Trial
from toolbench.lab.results.compare.comparison import Comparison, get_comparison
from toolbench.lab.results.compare.diagnosis import Diagnosis, MetricDifference, diagnose
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.query import CompareQuery

pytestmark = pytest.mark.django_db
CALLS_AS_TEXT = {"failure_class": "call_in_tags", "structured_answers": 0, "calls": 0, "valid_calls": 0}


def compare_providers(
    good: str, bad: str, *, canonical: str = "acme/one", failing: Mapping[str, Any] = CALLS_AS_TEXT
) -> Comparison:
    """Compare trials at two providers; `good` and `bad` have a letter for each outcome, p or f."""
    Preset.objects.get_or_create(name="content_tag_tool_call_fallback", defaults={"description": "Reads tags."})
    run = make_run()
    for name, outcomes in (("Good host", good), ("Bad host", bad)):
        model = make_model("one", provider=make_provider(name), canonical=canonical)
        cell = make_cell(make_config(run, model))
        for letter in outcomes:
            make_trial(cell, **({"outcome": "pass"} if letter == "p" else {"outcome": "fail", **failing}))
    query = QueryDict(f"run={run.pk}&a_provider=Good host&b_provider=Bad host")
    return get_comparison(CompareQuery.from_query(query))


def diagnose_providers(good: str, bad: str, *, canonical: str = "acme/one") -> Diagnosis | None:
    return diagnose(compare_providers(good, bad, canonical=canonical))


def test_diagnosis_of_equal_weights_names_the_worse_provider() -> None:
    found = diagnose_providers("p" * 20, "f" * 20)
    assert found is not None
    assert (found.explanation, found.worse_provider, found.better_provider) == ("provider", "Bad host", "Good host")
    assert [difference.label for difference in found.differences] == ["Success", "Structured-call rate"]


@pytest.mark.parametrize(("answer", "explanation"), [("", "model"), ("same", "open")])
def test_diagnosis_of_repeated_answers_is_open(answer: str, explanation: str) -> None:
    query = compare_providers("f" * 20, "f" * 20).query
    Cell.objects.update(deterministic=True)
    Trial.objects.update(answer_hash=answer)
    found = diagnose(get_comparison(query))
    assert found is not None
    assert found.explanation == explanation


def test_diagnosis_suggests_preset_for_the_most_frequent_failure() -> None:
    found = diagnose_providers("p" * 20, "f" * 20)
    assert found is not None
    assert found.suggested_preset is not None
    assert found.suggested_preset.preset == "content_tag_tool_call_fallback"
    filled = parse_qs(found.suggested_preset.query)
    assert filled["strategies"] == ["content_tag_tool_call_fallback"]
    assert filled["scenarios"] == ["happy_path"]
    assert filled["trials"] == ["10"]


def test_diagnosis_success_equals_comparison_page_and_export() -> None:
    """30/40 against 38/40 is significant alone, but not as one of three comparisons."""
    page = compare_providers("p" * 38 + "f" * 2, "p" * 30 + "f" * 10, failing={})
    assert page.secondary.comparisons > 1
    assert page.whole.difference is not None
    assert not page.whole.with_comparisons(page.secondary.comparisons).differs
    assert page.whole.result_text == "worse"
    exported = export_comparison(page.query)
    whole = dict(zip(exported.columns, exported.rows[0], strict=True))
    assert (whole["comparisons"], whole["says"], whole["low_simultaneous"]) == (1, "worse", page.whole.difference.low)
    found = diagnose(page)
    assert found is not None
    assert found.explanation == "provider"
    assert found.differences == (MetricDifference("Success", page.whole.second, page.whole.first),)


def test_diagnosis_excludes_failures_of_trials_not_compared() -> None:
    """Only the worse side has another version, prompt, group, kind and scenario."""
    page = compare_providers("p" * 20, "f" * 20)
    config = RunConfig.objects.get(provider_name="Bad host")
    cell = config.cells.get()
    make_trial(cell, "fail", failure_class="aside", prompt_version="0")
    others: list[tuple[str, dict[str, Any]]] = [
        (cell.scenario, {"scenario_version": 2}),
        ("of_one_side", {}),
        ("weather", {"scenario_group": "weather"}),
        (cell.scenario, {"instance_kind": "drawn"}),
    ]
    for scenario, fields in others:
        left_out = make_cell(config, scenario, **fields)
        for _ in range(30):
            make_trial(left_out, "fail", failure_class="aside")
    found = diagnose(get_comparison(page.query))
    assert found is not None
    assert [(failure.failure_class, failure.count) for failure in found.failures] == [("call_in_tags", 20)]


def test_diagnosis_lists_three_classes_beside_failures_without_one() -> None:
    page = compare_providers("p" * 20, "f" * 20, failing={"failure_class": ""})
    failed = list(Trial.objects.filter(config__provider_name="Bad host"))
    for trial, name in zip(failed, ("one", "two", "three"), strict=False):
        Trial.objects.filter(pk=trial.pk).update(failure_class=name)
    found = diagnose(page)
    assert found is not None
    assert {failure.failure_class for failure in found.failures} == {"one", "two", "three"}


def test_diagnosis_of_two_bad_providers_names_the_model() -> None:
    found = diagnose_providers("f" * 38 + "p" * 2, "f" * 38 + "p" * 2)
    assert found is not None
    assert found.explanation == "model"
    assert found.suggested_preset is None


def test_diagnosis_of_two_good_providers_is_undecided() -> None:
    found = diagnose_providers("p" * 20, "p" * 19 + "f")
    assert found is not None
    assert found.explanation == "open"


def test_diagnosis_without_common_canonical_name_is_none() -> None:
    assert diagnose_providers("p" * 20, "f" * 20, canonical="") is None


def test_load_class_presets_names_existing_classes_and_presets() -> None:
    assert set(load_class_presets()) <= {row.code for row in load_classes()}
    assert set(load_class_presets().values()) <= set(list_preset_names())
