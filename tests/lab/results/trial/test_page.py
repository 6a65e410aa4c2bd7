"""Trial page: timeline, opened step, repeats and earlier executions."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, make_trials
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.page import MAX_STEPS, TrialPage, get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter

pytestmark = pytest.mark.django_db

ANSWER_FACTS = {
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
REFUSED_CALL_FACTS = {
    "arguments": {"ops": {"op": "set"}},
    "executed": False,
    "parse_status": "ok",
    "schema_errors": [{"path": "$.ops", "kind": "type", "message": "expected array, got object"}],
    "envelope": {"ok": False},
}


def make_failed_trial() -> Trial:
    cell = make_cell(make_config(make_run()), "type_error_recovery")
    trial = make_trial(cell, "fail", first_bad_ordinal=1, verdict={"rule": "state", "checks": []})
    make_step(trial, bodies={"request": b'{"model": "m"}', "response": b'{"choices": []}', "facts": ANSWER_FACTS})
    make_step(
        trial,
        kind="tool",
        tool_name="state_patch",
        ok=False,
        error_code="ARGUMENT_ERROR",
        bodies={"facts": REFUSED_CALL_FACTS},
    )
    return trial


def open_page(trial: Trial, key: str = "") -> TrialPage:
    return get_trial_page(trial.pk, TrialFilter(), key)


def test_trial_page_opens_at_the_first_bad_step() -> None:
    page = open_page(make_failed_trial())
    assert page.first_bad_key == "1.dispatch"
    assert page.step is not None
    assert page.step.key == "1.dispatch"
    assert [problem.path for problem in page.step.problems] == ["$.ops"]
    assert any(line.mark == "bad" for line in page.step.right.code.lines)


@pytest.mark.parametrize(
    ("end", "ok", "expected"), [("TOOL_ERROR", True, True), ("TOOL_ERROR", False, False), ("FINAL", True, False)]
)
def test_trial_page_says_if_only_the_end_of_the_run_failed(end: str, ok: bool, expected: bool) -> None:
    checks = [{"name": "the draft is bar", "ok": ok, "detail": ""}]
    trial = make_trial(make_cell(make_config(make_run())), "fail", end=end, verdict={"rule": "", "checks": checks})
    assert open_page(trial).is_failed_by_end == expected


@pytest.mark.parametrize(
    ("outcome", "scenario", "counts"),
    [("pass", "happy_path", False), ("fail", "happy_path", False), ("fail", "chat_only_1", True)],
)
def test_trial_page_final_sentence_counts_only_in_controls(outcome: str, scenario: str, counts: bool) -> None:
    checks = [{"name": "the draft is bar", "ok": True}, {"name": "says Done.", "ok": False, "detail": "'ok'"}]
    cell = make_cell(make_config(make_run()), scenario)
    page = open_page(make_trial(cell, outcome, verdict={"rule": "", "checks": checks}))
    assert [check.name for check in page.case_study_only] == ([] if counts else ["says Done."])


def test_trial_page_timeline_has_every_part_of_a_turn_in_order() -> None:
    parts = [line.part for turn in open_page(make_failed_trial()).timeline for line in turn.rows]
    assert parts == ["request", "response", "transforms", "calls", "dispatch", "result"]


def test_trial_page_parsed_calls_show_the_schema_error_too() -> None:
    step = open_page(make_failed_trial(), "0.calls").step
    assert step is not None
    assert [problem.message for problem in step.problems] == ["expected array, got object"]


def test_trial_page_lists_what_transforms_changed() -> None:
    step = open_page(make_failed_trial(), "0.transforms").step
    assert step is not None
    assert [change.name for change in step.changes] == ["object_to_array"]


def test_trial_page_with_an_unknown_step_opens_the_first_bad_one() -> None:
    step = open_page(make_failed_trial(), "99.nothing").step
    assert step is not None
    assert step.key == "1.dispatch"


def test_trial_page_offers_curl_for_a_request_with_a_url() -> None:
    trial = make_failed_trial()
    make_step(trial, url="https://example.test/v1/chat", turn=1, bodies={"request": b"{}", "facts": ANSWER_FACTS})
    steps_by_key = {key: open_page(trial, key).step for key in ("0.request", "2.request", "2.response")}
    assert {key: step.has_curl for key, step in steps_by_key.items() if step} == {
        "0.request": False, "2.request": True, "2.response": False,
    }  # fmt: skip


def test_trial_page_counts_earlier_executions_separately() -> None:
    trial = make_failed_trial()
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    make_step(Trial.objects.get(pk=trial.pk), ordinal=0)
    page = open_page(trial)
    assert [(item.execution, item.steps) for item in page.earlier] == [(1, 2)]
    assert len(page.timeline) == 1


def test_trial_page_groups_equal_repeats() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 3, "fail": 1})
    Trial.objects.filter(outcome="pass").update(answer_hash="same")
    page = open_page(trials[3])
    assert [(group.mark, group.indexes) for group in page.repeat_groups] == [("pass", (1, 2, 3)), ("fail", (4,))]
    assert page.distinct == 2


def test_trial_page_groups_repeats_with_equal_calls() -> None:
    cell = make_cell(make_config(make_run()))
    trials = make_trials(cell, **{"pass": 4})
    make_step(trials[3], kind="tool", tool_name="state_get", ok=True)
    page = open_page(trials[0])
    assert [(group.indexes, group.distinct, group.calls) for group in page.repeat_groups] == [
        ((1, 2, 3), 3, ()), ((4,), 1, (("state_get", True),)),
    ]  # fmt: skip
    assert page.distinct == 4


def test_trial_page_of_a_queued_trial_has_no_steps() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "queued")
    page = open_page(trial)
    assert page.timeline == ()
    assert page.step is None


def test_trial_page_number_of_queries_does_not_grow_with_steps(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    trial = make_failed_trial()
    for turn in range(1, 8):
        make_step(trial, turn=turn, bodies={"facts": ANSWER_FACTS})
    with django_assert_num_queries(6):
        open_page(trial)


def test_trial_page_truncates_no_step_for_a_long_earlier_execution() -> None:
    trial = make_failed_trial()
    for ordinal in range(2, MAX_STEPS):
        make_step(trial, ordinal=ordinal)
    assert not open_page(trial).steps_truncated
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    make_step(Trial.objects.get(pk=trial.pk), ordinal=0)
    page = open_page(trial)
    assert (len(page.timeline), page.steps_truncated) == (1, False)
    assert [item.steps for item in page.earlier] == [MAX_STEPS]


def test_trial_page_omits_details_over_the_limit_but_for_open_turn() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    large_facts = ANSWER_FACTS | {"padding": "x" * 399_000}
    for turn in range(12):
        make_step(trial, turn=turn, bodies={"facts": large_facts})
    page = open_page(trial, "11.calls")
    titles = [line.title for turn in page.timeline for line in turn.rows if line.part == "calls"]
    assert titles == ["Parsed calls, 1"] * 9 + ["Parsed calls"] * 2 + ["Parsed calls, 1"]
    assert page.step is not None
    assert page.step.right.code.lines


def test_trial_page_names_dropped_tools_as_the_cause() -> None:
    trial = make_failed_trial()
    Trial.objects.filter(pk=trial.pk).update(tools_dropped=True, failure_class="cut_by_length")
    page = open_page(trial)
    assert "dropped the tools" in page.headline
    assert "template" in page.suggested_fix


def test_trial_page_shows_deeply_nested_request_as_text() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass")
    body = b'{"prompt": ' + b"[" * 90_000 + b"]" * 90_000 + b"}"
    make_step(trial, bodies={"request": body, "response": b"{}"}, request_bytes=len(body))
    step = open_page(trial, "0.request").step
    assert step is not None
    assert step.right.title == "Headers"


def test_trial_page_says_that_only_the_beginning_of_a_tool_result_is_shown() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass")
    make_step(trial, kind="tool", tool_name="get", bodies={"response": b"x" * 300_000}, response_bytes=300_000)
    step = open_page(trial, "0.result").step
    assert step is not None
    assert (step.left.note, step.left.code.is_truncated) == ("300,000 bytes", True)


def test_trial_page_shows_a_prompt_as_text_beside_its_bytes() -> None:
    trial = make_trial(make_cell(make_config(make_run(), method="template")), "pass")
    facts = {"request_headers": {"x-one": "1"}}
    make_step(trial, bodies={"request": b'{"prompt": "one\\ntwo"}', "response": b"{}", "facts": facts})
    step = open_page(trial, "0.request").step
    assert step is not None
    assert step.right.title == "Prompt, as the model reads it"
    assert [line.text for line in step.right.code.lines] == ["one", "two"]
    assert step.headers == (("x-one", "1"),)
