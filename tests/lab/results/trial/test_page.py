"""One trial step by step."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.page import MAX_STEPS, Trace, get_trace
from toolbench.lab.results.trial_list.filter import TrialFilter

pytestmark = pytest.mark.django_db

ANSWER = {
    "message": {"role": "assistant", "tool_calls": [{"id": "tc_1"}]},
    "response_changes": [
        {
            "kind": "response",
            "name": "object_to_array",
            "path": "$.tool_calls",
            "before": "object",
            "after": "array of 1",
        }
    ],
    "calls_found": [{"id": "", "name": "state_patch", "arguments": {"ops": {}}}],
    "calls": [{"id": "tc_1", "name": "state_patch", "arguments": {"ops": {}}}],
    "findings": [],
}
REFUSED = {
    "arguments": {"ops": {"op": "set"}},
    "executed": False,
    "parse_status": "ok",
    "schema_errors": [{"path": "$.ops", "kind": "type", "message": "expected array, got object"}],
    "envelope": {"ok": False},
}


def failed_trial() -> Trial:
    cell = make_cell(make_config(make_run()), "type_error_recovery")
    trial = make_trial(cell, "fail", first_bad_ordinal=1, verdict={"rule": "state", "checks": []})
    make_step(trial, bodies={"request": b'{"model": "m"}', "response": b'{"choices": []}', "facts": ANSWER})
    make_step(
        trial, kind="tool", tool_name="state_patch", ok=False, error_code="ARGUMENT_ERROR", bodies={"facts": REFUSED}
    )
    return trial


def open_at(trial: Trial, key: str = "") -> Trace:
    return get_trace(trial.pk, TrialFilter(), key)


def test_the_page_opens_at_the_first_bad_step() -> None:
    trace = open_at(failed_trial())
    assert trace.first_bad_key == "1.dispatch"
    assert trace.step is not None
    assert trace.step.key == "1.dispatch"
    assert [fault.path for fault in trace.step.problems] == ["$.ops"]
    assert any(line.mark == "bad" for line in trace.step.right.code.lines)


def test_timeline_has_the_same_parts_in_every_turn() -> None:
    parts = [line.part for turn in open_at(failed_trial()).timeline for line in turn.rows]
    assert parts == ["request", "response", "transforms", "calls", "dispatch", "result"]


def test_a_schema_error_stands_beside_the_parsed_calls_too() -> None:
    step = open_at(failed_trial(), "0.calls").step
    assert step is not None
    assert [fault.message for fault in step.problems] == ["expected array, got object"]


def test_what_transforms_changed_is_listed() -> None:
    step = open_at(failed_trial(), "0.transforms").step
    assert step is not None
    assert [change.name for change in step.changes] == ["object_to_array"]


def test_an_unknown_step_in_the_address_falls_back_to_the_first_bad_one() -> None:
    step = open_at(failed_trial(), "99.nothing").step
    assert step is not None
    assert step.key == "1.dispatch"


def test_request_with_an_address_can_be_copied_as_curl() -> None:
    trial = failed_trial()
    make_step(trial, url="https://example.test/v1/chat", turn=1, bodies={"request": b"{}", "facts": ANSWER})
    shown = {key: open_at(trial, key).step for key in ("0.request", "2.request", "2.response")}
    assert {key: step.has_curl for key, step in shown.items() if step} == {
        "0.request": False, "2.request": True, "2.response": False,
    }  # fmt: skip


def test_steps_of_an_earlier_execution_are_counted_apart() -> None:
    trial = failed_trial()
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    make_step(Trial.objects.get(pk=trial.pk), ordinal=0)
    trace = open_at(trial)
    assert [(item.execution, item.steps) for item in trace.earlier] == [(1, 2)]
    assert len(trace.timeline) == 1


def test_equal_repeats_are_folded_with_their_count() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 3, "fail": 1})
    Trial.objects.filter(outcome="pass").update(answer_hash="same")
    trace = open_at(trials[3])
    assert [(fold.mark, fold.indexes) for fold in trace.repeat_groups] == [("pass", (1, 2, 3)), ("fail", (4,))]
    assert trace.distinct == 2


def test_repeats_that_went_alike_are_one_row_whatever_their_wording() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 4})
    make_step(trials[3], kind="tool", tool_name="state_get", ok=True)
    trace = open_at(trials[0])
    assert [(fold.indexes, fold.distinct, fold.calls) for fold in trace.repeat_groups] == [
        ((1, 2, 3), 3, ()), ((4,), 1, (("state_get", True),)),
    ]  # fmt: skip
    assert trace.distinct == 4


def test_a_trial_that_still_waits_has_a_page() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "queued")
    trace = open_at(trial)
    assert trace.timeline == ()
    assert trace.step is None


def test_the_number_of_queries_does_not_grow_with_steps(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    trial = failed_trial()
    for turn in range(1, 8):
        make_step(trial, turn=turn, bodies={"facts": ANSWER})
    with django_assert_num_queries(6):
        open_at(trial)


def test_a_long_earlier_execution_leaves_the_current_one_whole() -> None:
    trial = failed_trial()
    for ordinal in range(2, MAX_STEPS):
        make_step(trial, ordinal=ordinal)
    assert not open_at(trial).steps_truncated
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    make_step(Trial.objects.get(pk=trial.pk), ordinal=0)
    trace = open_at(trial)
    assert (len(trace.timeline), trace.steps_truncated) == (1, False)
    assert [item.steps for item in trace.earlier] == [MAX_STEPS]


def test_facts_above_page_limit_are_omitted_except_open_turn() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    large = ANSWER | {"padding": "x" * 399_000}
    for turn in range(12):
        make_step(trial, turn=turn, bodies={"facts": large})
    trace = open_at(trial, "11.calls")
    said = [line.title for turn in trace.timeline for line in turn.rows if line.part == "calls"]
    assert said == ["Parsed calls, 1"] * 9 + ["Parsed calls"] * 2 + ["Parsed calls, 1"]
    assert trace.step is not None
    assert trace.step.right.code.lines


def test_dropped_tools_are_the_first_cause_named_whatever_came_of_them() -> None:
    trial = failed_trial()
    Trial.objects.filter(pk=trial.pk).update(tools_dropped=True, failure_class="cut_by_length")
    trace = open_at(trial)
    assert "dropped the tools" in trace.headline
    assert "template" in trace.suggested_fix


def test_a_prompt_is_shown_as_the_model_reads_it_beside_the_bytes() -> None:
    trial = make_trial(make_cell(make_config(make_run(), method="template")), "pass")
    facts = {"request_headers": {"x-one": "1"}}
    make_step(trial, bodies={"request": b'{"prompt": "one\\ntwo"}', "response": b"{}", "facts": facts})
    step = open_at(trial, "0.request").step
    assert step is not None
    assert step.right.title == "Prompt, as the model reads it"
    assert [line.text for line in step.right.code.lines] == ["one", "two"]
    assert step.headers == (("x-one", "1"),)
