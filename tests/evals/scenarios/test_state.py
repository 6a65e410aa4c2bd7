"""Tests of verdicts on the scenarios that change a workspace."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_calling_turn, build_ended, build_result, build_text_turn
from toolbench.engine.events import EndReason
from toolbench.engine.types import SchemaError
from toolbench.evals.scenarios import state
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, ProblemLocation

TOO_LARGE = build_result("state_patch", "x" * 400, code="ARGUMENTS_TOO_LARGE", parse_status="too_large")
OUTPUT_TOO_LARGE = build_result("state_get", {}, code="TOOL_OUTPUT_TOO_LARGE")
GUARDS = ["long_arguments_guard", "long_arguments_guard_uncapped"]


@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_happy_path_get_patch_done_passes_by_both_rules(kind: str) -> None:
    trial = ManualTrial("happy_path", kind)
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")
        )
    )
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass, verdict.failure_class) == ("pass", True, True, "")
    assert (verdict.counts["calls"], verdict.counts["valid_calls"]) == (2, 2)
    assert (verdict.category, verdict.sentence, verdict.first_bad, verdict.behaviour_seen) == ("", "", None, None)


def test_happy_path_final_text_decides_only_the_parity_pass() -> None:
    trial = ManualTrial("happy_path")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), build_text_turn(2, "All set!")
        )
    )
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("pass", True, False)
    assert verdict.category == "ASSERTION_FAILED"


@pytest.mark.parametrize("scenario", state.load_scenarios(), ids=lambda scenario: scenario.slug)
@pytest.mark.parametrize("last", ["", " \n\t", "\u200b\u2060", "\u3164"])
def test_state_scenario_blank_final_text_fails(scenario: state.StateScenario, last: str) -> None:
    trial = ManualTrial(scenario.slug)
    turns = (
        [build_calling_turn(0, trial.get(), trial.patch())]
        if scenario.slug == "happy_path_parallel"
        else [build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch())]
    )
    verdict = trial.judge(build_ended(*turns, build_text_turn(2, last)))
    assert (verdict.outcome, verdict.task_pass, verdict.failure_class) == ("fail", False, "empty_final")
    assert (verdict.parity_pass, verdict.category) == (False, "ASSERTION_FAILED")
    assert verdict.first_bad == ProblemLocation(
        2, None, "$.choices[0].message.content", "Turn 3: the last message has no visible character."
    )
    assert trial.judge(build_ended(*turns, build_text_turn(2, last), build_text_turn(3, "."))).outcome == "pass"


def test_happy_path_blank_final_text_comes_before_an_earlier_failed_call() -> None:
    trial = ManualTrial("happy_path")
    unknown = build_result("facts_commit", {}, code="TOOL_NOT_ALLOWED")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get(), unknown), build_calling_turn(1, trial.patch()), build_text_turn(2, "")
        )
    )
    assert verdict.failure_class == "empty_final"


def test_happy_path_reading_alone_is_never_patched() -> None:
    trial = ManualTrial("happy_path")
    verdict = trial.judge(build_ended(build_calling_turn(0, trial.get()), build_text_turn(1, "Done.")))
    assert (verdict.outcome, verdict.failure_class) == ("fail", "never_patched")
    assert verdict.sentence == "Turn 2: the run ends here; state_patch was never called."


def test_happy_path_wrong_value_is_named_with_its_call() -> None:
    trial = ManualTrial("happy_path")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()),
            build_calling_turn(1, trial.patch(value="baz")),
            build_text_turn(2, "Done."),
        )
    )
    assert verdict.failure_class == "wrong_state"
    assert verdict.sentence == 'Turn 2, parsed call 1: /draft/foo should be "bar"; it is "baz".'


def test_type_error_recovery_wrong_type_is_named_with_its_path() -> None:
    trial = ManualTrial("type_error_recovery")
    error = SchemaError("$.ops", "type", 'the value is not of type "array"')
    wrong = build_result("state_patch", {"request_id": "r1", "ops": {}}, code="ARGUMENT_ERROR", schema_errors=[error])
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()),
            build_calling_turn(1, wrong),
            build_text_turn(2, "Done."),
            end=EndReason.TOOL_ERROR,
        )
    )
    assert verdict.sentence == "Turn 2, parsed call 1: $.ops is an object; state_patch takes an array."
    assert (verdict.failure_class, verdict.category) == ("arguments_break_schema", "TOOL_ERROR")
    assert verdict.first_bad is not None
    assert (verdict.first_bad.turn, verdict.first_bad.call, verdict.first_bad.path) == (1, 0, "$.ops")
    assert (verdict.behaviour_seen, verdict.avoided) == (True, False)


def test_type_error_recovery_corrected_call_passes_and_is_seen() -> None:
    trial = ManualTrial("type_error_recovery")
    wrong = build_result("state_patch", {"request_id": "r1", "ops": "[]"}, code="ARGUMENT_ERROR")
    right = build_calling_turn(2, trial.patch())
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, wrong), right, build_text_turn(3, "Done.")
        )
    )
    assert (verdict.outcome, verdict.behaviour_seen, verdict.avoided) == ("pass", True, False)


def test_type_error_recovery_array_at_once_avoids_the_error() -> None:
    trial = ManualTrial("type_error_recovery")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")
        )
    )
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen, verdict.avoided) == (
        "pass",
        True,
        False,
        True,
    )


def test_missing_workspace_id_omitted_id_is_seen() -> None:
    trial = ManualTrial("missing_workspace_id")
    implicit = trial.call("state_patch", request_id="r1", ops=[{"op": "set", "path": "/draft/foo", "value": "bar"}])
    without_id = trial.judge(
        build_ended(
            build_calling_turn(0, trial.call("state_get")), build_calling_turn(1, implicit), build_text_turn(2, "Done.")
        )
    )
    with_id = trial.judge(
        build_ended(build_calling_turn(0, trial.get()), build_calling_turn(1, implicit), build_text_turn(2, "Done."))
    )
    assert [without_id.behaviour_seen, with_id.behaviour_seen] == [True, False]
    assert [without_id.outcome, with_id.outcome, with_id.avoided] == ["pass", "pass", False]


def test_partial_success_failure_corrected_call_passes_by_both_rules() -> None:
    trial = ManualTrial("partial_success_failure")
    mixed = build_calling_turn(0, trial.get(), trial.patch(key="wrong"))
    verdict = trial.judge(build_ended(mixed, build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")))
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen) == ("pass", True, True)


def test_partial_success_failure_without_wrong_call_is_avoided() -> None:
    trial = ManualTrial("partial_success_failure")
    verdict = trial.judge(build_ended(build_calling_turn(0, trial.get(), trial.patch()), build_text_turn(1, "Done.")))
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen, verdict.avoided) == (
        "pass",
        False,
        False,
        True,
    )


def test_partial_success_failure_no_second_call_is_gave_up_after_error() -> None:
    trial = ManualTrial("partial_success_failure")
    mixed = build_calling_turn(0, trial.get(), trial.patch(key="wrong"))
    verdict = trial.judge(build_ended(mixed, build_text_turn(1, "Done."), end=EndReason.TOOL_ERROR))
    assert (verdict.failure_class, verdict.category) == ("gave_up_after_error", "TOOL_ERROR")
    assert verdict.sentence == "Turn 2: no later call recovers from the ARGUMENT_ERROR of turn 1."


def test_happy_path_parallel_needs_two_calls_in_one_message() -> None:
    trial = ManualTrial("happy_path_parallel")
    together = trial.judge(build_ended(build_calling_turn(0, trial.get(), trial.patch()), build_text_turn(1, "Done.")))
    sequential = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")
        )
    )
    assert (together.outcome, together.parity_pass, together.behaviour_seen) == ("pass", True, True)
    assert (sequential.outcome, sequential.parity_pass, sequential.failure_class) == ("fail", False, "not_parallel")
    assert sequential.avoided is False


@pytest.mark.parametrize("slug", GUARDS)
def test_long_arguments_guard_shortened_call_passes_and_met_the_limit(slug: str) -> None:
    trial = ManualTrial(slug)
    turns = [
        build_calling_turn(0, trial.get()),
        build_calling_turn(1, TOO_LARGE),
        build_calling_turn(2, trial.patch()),
        build_text_turn(3, "Done."),
    ]
    verdict = trial.judge(build_ended(*turns))
    assert (verdict.outcome, verdict.behaviour_seen) == ("pass", True)
    assert _list_guard_counts(verdict.counts) == (1, 0, 0)


@pytest.mark.parametrize("slug", GUARDS)
def test_long_arguments_guard_truncated_call_is_counted_separately(slug: str) -> None:
    trial = ManualTrial(slug)
    broken = build_result("state_patch", '{"ops": [', code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    turns = [
        build_calling_turn(0, trial.get()),
        build_calling_turn(1, broken, finish="length"),
        build_text_turn(2, "Done."),
    ]
    verdict = trial.judge(build_ended(*turns, end=EndReason.TOOL_ERROR))
    assert (verdict.failure_class, verdict.behaviour_seen) == ("cut_by_length", False)
    assert verdict.sentence.startswith("Turn 2: the answer was truncated at the token limit")
    assert _list_guard_counts(verdict.counts) == (0, 1, 0)


@pytest.mark.parametrize("slug", GUARDS)
def test_long_arguments_guard_short_call_at_once_counts_as_never_tried(slug: str) -> None:
    trial = ManualTrial(slug)
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")
        )
    )
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen, verdict.avoided) == (
        "pass",
        True,
        False,
        True,
    )
    assert _list_guard_counts(verdict.counts) == (0, 0, 1)


@pytest.mark.parametrize("slug", GUARDS)
def test_long_arguments_guard_long_call_not_repeated_is_gave_up(slug: str) -> None:
    trial = ManualTrial(slug)
    turns = [build_calling_turn(0, trial.get()), build_calling_turn(1, TOO_LARGE), build_text_turn(2, "Done.")]
    verdict = trial.judge(build_ended(*turns, end=EndReason.TOOL_ERROR))
    assert (verdict.failure_class, verdict.category) == ("gave_up_after_error", "TOOL_ERROR")
    assert verdict.sentence == "Turn 3: no later call recovers from the ARGUMENTS_TOO_LARGE of turn 2."


def test_tool_output_truncation_patch_after_overflow_passes() -> None:
    trial = ManualTrial("tool_output_truncation")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, OUTPUT_TOO_LARGE), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done.")
        )
    )
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen) == ("pass", True, True)


def test_tool_output_truncation_narrow_select_avoids_the_overflow() -> None:
    trial = ManualTrial("tool_output_truncation")
    narrow = trial.get(select=["/draft/foo"])
    verdict = trial.judge(
        build_ended(build_calling_turn(0, narrow), build_calling_turn(1, trial.patch()), build_text_turn(2, "Done."))
    )
    assert (verdict.outcome, verdict.parity_pass, verdict.behaviour_seen, verdict.avoided) == (
        "pass",
        False,
        False,
        True,
    )


def _list_guard_counts(counts: dict[str, int]) -> tuple[int, int, int]:
    return counts["limit_met"], counts["cut_by_length"], counts["never_tried"]
