"""Judging: the rules, the same for every scenario, that turn the checks of a trial into its verdict."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from toolbench.engine.events import ANSWERED_ENDS, EndReason, LoopResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.evals import record_counts
from toolbench.evals.judging import case_study_rule, failure_classes
from toolbench.evals.judging.diagnosis import Problem, find_first_problem, find_last_turn, locate_problem
from toolbench.evals.types import Check, Instance, ProblemLocation, Verdict

VERSION = 4  # of the judging rules; increase it by one whenever a verdict or one of its texts may change
NEW_CLASSES_BY_VERSION = {
    2: frozenset({"empty_final", "empty_answer"}),
    # A pass can become a failure with the class of any problem of an answer or a call. A failure can get the class of
    # the next problem of its run, or become a pass.
    3: frozenset(
        {
            "",
            "arguments_break_schema",
            "arguments_not_json",
            "arguments_refused",
            "arguments_too_large",
            "call_in_tags",
            "call_unreadable",
            "constraint_ignored",
            "cut_by_length",
            "empty_answer",
            "empty_final",
            "gave_up_after_error",
            "missing_call",
            "not_parallel",
            "stream_cut",
            "text_instead_of_call",
            "too_many_calls",
            "tool_crashed",
            "tool_error",
            "tool_not_implemented",
            "tool_output_too_large",
            "tool_output_unserializable",
            "tool_timeout",
            "unasked_calls",
            "unknown_tool",
            "wrong_arguments",
            "wrong_reply",
            "wrong_state",
            "wrong_tool",
            "wrong_workspace",
        }
    ),
    # In a user's test case, a missing call, a wrong tool, a wrong order and too many calls each have their own class.
    4: frozenset({"missing_call", "too_many_calls", "wrong_order", "wrong_tool"}),
}
"""The failure classes to which each version of the rules may change an older verdict, with "" for a pass."""
CASE_STUDY_RULE_VERSIONS = frozenset({3})
"""The versions of the rules that may change the case study's verdict of a trial without changing its failure class."""

FINAL_TEXT_CHECK = "the run ends with a visible text"


@light(frozen=True, slots=True)
class CheckedResult:
    """The result of a scenario's checks, before the verdict.

    Attributes:
        rule: The rule for a pass in plain words.
        checks: The checks that must all hold for a pass.
        case_study_checks: The case study's assertions; None if the case study does not have the scenario.
        fallback_problem: The problem to report if the trial fails although diagnosis finds no problem in its run.
        good_ends: The end reasons with which a trial can pass.
        needs_tools: Whether the task is not applicable without tools.
        needs_final_text: Whether a run whose last message is blank fails the task.
        behaviour_seen: Whether the scenario's behaviour occurred; None if the scenario names none.
        avoided: Whether the task was done without the error that the scenario provokes.
        expected_codes: Error codes that the task provokes.
        counts: Counts that only this scenario has, by name.
    """

    instance: Instance
    loop_result: LoopResult
    rule: str
    checks: tuple[Check, ...]
    case_study_checks: tuple[Check, ...] | None
    fallback_problem: Problem
    good_ends: frozenset[EndReason] = ANSWERED_ENDS
    needs_tools: bool = True
    needs_final_text: bool = False
    behaviour_seen: bool | None = None
    avoided: bool = False
    expected_codes: tuple[str, ...] = ()
    counts: JsonObject = field(default_factory=dict)


def judge(checked: CheckedResult) -> Verdict:
    """Return the verdict of the first rule that applies.

    The order is: cancelled, not applicable, infrastructure error, broken off, checks.
    """
    if checked.needs_final_text:
        checked = _add_final_text_check(checked)
    return next(verdict for judge_by_rule in _RULES if (verdict := judge_by_rule(checked)) is not None)


def _add_final_text_check(checked: CheckedResult) -> CheckedResult:
    """Return the result with the check that the last message is not blank."""
    is_missing = is_blank(checked.loop_result.final_text)
    check = Check(FINAL_TEXT_CHECK, not is_missing, "the last message has no visible character" if is_missing else "")
    return replace(checked, checks=(*checked.checks, check))


def _judge_cancelled(checked: CheckedResult) -> Verdict | None:
    if checked.loop_result.end not in (EndReason.CANCELLED, EndReason.BUDGET_SPENT):
        return None
    return _build_verdict(
        checked,
        "cancelled",
        task_pass=None,
        parity_pass=None,
        failure_class=failure_classes.classify_end(checked.loop_result.end),
    )


def _judge_not_applicable(checked: CheckedResult) -> Verdict | None:
    if not (checked.needs_tools and record_counts.is_without_tools(checked.loop_result)):
        return None
    parity_pass = None
    if checked.case_study_checks is not None:  # with tools off the case study asserts only the final sentence
        done_check = case_study_rule.build_done_check(checked.loop_result)
        parity_pass = record_counts.has_answer(checked.loop_result) and case_study_rule.is_case_study_pass(
            checked.loop_result, (done_check,)
        )
    return _build_verdict(checked, "na", task_pass=None, parity_pass=parity_pass, failure_class="tools_off")


def _judge_infrastructure(checked: CheckedResult) -> Verdict | None:
    error = checked.loop_result.error
    if checked.loop_result.end is not EndReason.PROVIDER_ERROR or error is None or not error.infrastructure:
        return None
    return _build_broken_off_verdict(checked, "infra", failure_classes.classify_exchange_error(error))


def _judge_broken_off(checked: CheckedResult) -> Verdict | None:
    """Return a failure if the provider ended the run or the trial deadline passed; else None."""
    if checked.loop_result.end is EndReason.PROVIDER_ERROR:
        error = checked.loop_result.error
        return _build_broken_off_verdict(
            checked, "fail", failure_classes.classify_exchange_error(error) if error else failure_classes.UNNAMED_CLASS
        )
    if checked.loop_result.end is EndReason.DEADLINE_EXCEEDED:
        return _build_broken_off_verdict(checked, "fail", failure_classes.classify_end(checked.loop_result.end))
    return None


def _judge_checks(checked: CheckedResult) -> Verdict:
    """Return the verdict of the checks; a trial without an answer fails, even if no call is expected."""
    has_answer = record_counts.has_answer(checked.loop_result)
    passed = has_answer and checked.loop_result.end in checked.good_ends and all(check.ok for check in checked.checks)
    parity_pass = (
        None
        if checked.case_study_checks is None
        else has_answer and case_study_rule.is_case_study_pass(checked.loop_result, checked.case_study_checks)
    )
    if passed:
        return _build_verdict(checked, "pass", task_pass=True, parity_pass=parity_pass)
    problem = _find_decisive_problem(checked)
    return _build_verdict(
        checked,
        "fail",
        task_pass=False,
        parity_pass=parity_pass,
        failure_class=problem.failure_class,
        location=problem.location,
    )


def mark_tools_dropped(verdict: Verdict, loop_result: LoopResult) -> Verdict:
    """Return the verdict with the class `tools_dropped`, for a server that left the tools out of the prompt.

    Only failures get the class. A verdict on a run that the provider or the trial deadline ended is not changed.
    """
    if verdict.outcome != "fail" or loop_result.end in (EndReason.PROVIDER_ERROR, EndReason.DEADLINE_EXCEEDED):
        return verdict
    row = failure_classes.lookup_class("tools_dropped")
    location = locate_problem(0, path="$.tools", sentence=row.sentence[:1].lower() + row.sentence[1:])
    return replace(verdict, failure_class=row.code, sentence=location.sentence, first_bad=location)


_RULES: tuple[Callable[[CheckedResult], Verdict | None], ...] = (
    _judge_cancelled,
    _judge_not_applicable,
    _judge_infrastructure,
    _judge_broken_off,
    _judge_checks,
)


def _find_decisive_problem(checked: CheckedResult) -> Problem:
    failed_checks = [check for check in checked.checks if not check.ok]
    if checked.loop_result.end in checked.good_ends and [check.name for check in failed_checks] == [FINAL_TEXT_CHECK]:
        return Problem(
            "empty_final",
            locate_problem(
                find_last_turn(checked.loop_result),
                path=record_counts.CONTENT_PATH,
                sentence=f"{failed_checks[0].detail}.",
            ),
        )
    problem = find_first_problem(checked.loop_result, checked.instance.tools, expected_codes=checked.expected_codes)
    if problem is not None:
        return problem
    if checked.loop_result.end in checked.good_ends or checked.loop_result.end is EndReason.NO_TOOL_CALLS:
        return checked.fallback_problem
    failure_class = failure_classes.classify_end(checked.loop_result.end)
    return Problem(
        failure_class,
        locate_problem(
            find_last_turn(checked.loop_result),
            sentence=checked.loop_result.message or failure_classes.lookup_class(failure_class).sentence,
        ),
    )


def _build_broken_off_verdict(checked: CheckedResult, outcome: str, failure_class: str) -> Verdict:
    error = checked.loop_result.error
    sentence = error.message if error and error.message else failure_classes.lookup_class(failure_class).sentence
    return _build_verdict(
        checked,
        outcome,
        task_pass=None if outcome == "infra" else False,
        parity_pass=None if checked.case_study_checks is None else False,
        failure_class=failure_class,
        location=locate_problem(find_last_turn(checked.loop_result), sentence=sentence),
    )


def _build_verdict(
    checked: CheckedResult,
    outcome: str,
    *,
    task_pass: bool | None,
    parity_pass: bool | None,
    failure_class: str = "",
    location: ProblemLocation | None = None,
) -> Verdict:
    row = failure_classes.lookup_class(failure_class) if failure_class else None
    return Verdict(
        outcome=outcome,
        task_pass=task_pass,
        parity_pass=parity_pass,
        failure_class=failure_class,
        category=_find_category(checked, outcome, parity_pass),
        sentence=location.sentence if location else row.sentence if row else "",
        rule=checked.rule,
        behaviour_seen=checked.behaviour_seen,
        avoided=checked.avoided,
        checks=_merge_checks(checked.checks, checked.case_study_checks or ()),
        first_bad=location,
        counts={**record_counts.count_trial(checked.loop_result), **checked.counts},
    )


def _find_category(checked: CheckedResult, outcome: str, parity_pass: bool | None) -> str:
    """Return the case study's word for a failed trial, else "".

    The case study's rule decides whether the trial failed; if it is not applied, the outcome decides.
    """
    is_failure = parity_pass is False or (parity_pass is None and outcome in ("fail", "infra"))
    return case_study_rule.categorise_failure(checked.loop_result) if is_failure else ""


def _merge_checks(checks: Sequence[Check], others: Sequence[Check]) -> tuple[Check, ...]:
    """Return all checks in order, each name once, with the result of the last check of that name."""
    return tuple({check.name: check for check in (*checks, *others)}.values())
