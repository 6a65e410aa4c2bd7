"""Names of expected calls and of calls made, beside each other in the list of trials."""

import json
from collections.abc import Mapping

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Case, CaseSet, CaseVersion, Trial
from toolbench.lab.results.trial_list.call_names import (
    CALL_FIELDS,
    MAX_NAMED_CALLS,
    NO_CALL,
    UNKNOWN_CALLS,
    CallNames,
    annotate_calls,
    build_call_names,
)

pytestmark = pytest.mark.django_db


def make_trial_with_calls(*calls: tuple[str, bool], scenario: str = "happy_path", **fields: object) -> Trial:
    trial = make_trial(make_cell(make_config(make_run()), scenario), "fail", **fields)
    make_step(trial)
    for name, ok in calls:
        make_step(trial, kind="tool", tool_name=name, ok=ok)
    return trial


def read_call_names(*trials: Trial) -> Mapping[int, CallNames]:
    rows = annotate_calls(Trial.objects.filter(pk__in=[trial.pk for trial in trials]))
    return build_call_names(tuple(rows.values_list(*CALL_FIELDS, named=True)))


def test_call_names_are_in_order_with_repeats_counted() -> None:
    trial = make_trial_with_calls(
        ("state_get", True), ("state_patch", False), ("state_patch", True), ("state_patch", True)
    )
    found = read_call_names(trial)[trial.pk]
    assert found.expected == "state_patch"
    assert found.got == "state_get, state_patch ✗, state_patch ×2"


def test_call_names_expected_of_control_or_unknown_version_say_so() -> None:
    control = make_trial_with_calls(scenario="chat_only")
    unknown = make_trial_with_calls(scenario_version=99)
    unknown_scenario = make_trial_with_calls(scenario="no_such_scenario")
    found = read_call_names(control, unknown, unknown_scenario)
    assert [found[trial.pk].expected for trial in (control, unknown, unknown_scenario)] == [
        NO_CALL,
        UNKNOWN_CALLS,
        UNKNOWN_CALLS,
    ]
    assert found[control.pk].got == ""


def test_call_names_exclude_steps_of_an_earlier_execution() -> None:
    trial = make_trial_with_calls(("state_get", True))
    Trial.objects.filter(pk=trial.pk).update(execution=trial.execution + 1)
    assert read_call_names(trial)[trial.pk].got == ""


def test_call_names_bound_their_number_and_length() -> None:
    calls = [(f"{'x' * 150}{number}", True) for number in range(MAX_NAMED_CALLS)]
    trial = make_trial_with_calls(*calls, ("last", True))
    got = read_call_names(trial)[trial.pk].got
    assert got.endswith("1 more")
    assert len(got) < 2_000


def test_call_names_of_many_trials_take_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    cell = make_cell(make_config(make_run()))
    trials = [make_trial(cell) for _ in range(20)]
    with django_assert_num_queries(1):
        assert len(read_call_names(*trials)) == 20


def test_call_names_of_a_users_case_take_one_more_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    definition: JsonObject = {
        "messages": [{"role": "user", "content": "Book it."}],
        "tools": [{"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}],
        "expect": {"calls": [{"name": "book", "arguments": {}}]},
    }
    case = Case.objects.create(slug="mine", title="Mine", set=CaseSet.objects.create(name="Own"), current=1)
    CaseVersion.objects.create(case=case, number=1, definition=json.dumps(definition))
    trial = make_trial_with_calls(("book", True), scenario="mine")
    with django_assert_num_queries(2):
        assert read_call_names(trial)[trial.pk] == CallNames("book", "book")
