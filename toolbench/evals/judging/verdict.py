"""Judging: from the checks of a scenario to one verdict.

The order of questions is the same for every scenario.
"""

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

VERSION = 2  # of the judging rules; increased by one whenever a verdict may change
NEW_CLASSES_BY_VERSION = {2: frozenset({"empty_final", "empty_answer"})}
"""By version: the failure classes that it newly gives. A verdict of an older version changes to these and no others."""

FINAL_TEXT_CHECK = "the run ends with a visible text"


@light(frozen=True, slots=True)
class CheckedResult:
    """The result of a scenario's checks, before the verdict.

    Attributes:
        checks: They decide the task pass, together with an end in `good_ends`.
        case_study_checks: The case study's assertions; None if it has no such scenario.
        fallback_problem: The problem if the record shows none and a check fails.
        needs_tools: Whether the task is not applicable without tools.
        needs_final_text: Whether a run whose last message is blank fails the task.
        expected: Error codes that belong to the task.
        counts: Counts of the scenario, beside those of every trial.
    """

    instance: Instance
    ended: LoopResult
    rule: str
    checks: tuple[Check, ...]
    case_study_checks: tuple[Check, ...] | None
    fallback_problem: Problem
    good_ends: frozenset[EndReason] = ANSWERED_ENDS
    needs_tools: bool = True
    needs_final_text: bool = False
    behaviour_seen: bool | None = None
    avoided: bool = False
    expected: tuple[str, ...] = ()
    counts: JsonObject = field(default_factory=dict)


def judge(case: CheckedResult) -> Verdict:
    """Return the verdict of the first question that applies.

    The order is: cancelled, not applicable, infrastructure error, broken off, checks.
    """
    checked = _add_final_text_check(case) if case.needs_final_text else case
    return next(verdict for question in _JUDGES if (verdict := question(checked)) is not None)


def _add_final_text_check(case: CheckedResult) -> CheckedResult:
    """Add the check that the last message is not blank."""
    blank = is_blank(case.ended.final_text)
    check = Check(FINAL_TEXT_CHECK, not blank, "the last message has no visible character" if blank else "")
    return replace(case, checks=(*case.checks, check))


def _judge_cancelled(case: CheckedResult) -> Verdict | None:
    if case.ended.end not in (EndReason.CANCELLED, EndReason.BUDGET_SPENT):
        return None
    return _build_verdict(
        case, "cancelled", task_pass=None, parity_pass=None, failure_class=failure_classes.classify_end(case.ended.end)
    )


def _judge_not_applicable(case: CheckedResult) -> Verdict | None:
    if not (case.needs_tools and record_counts.is_without_tools(case.ended)):
        return None
    done = (case_study_rule.build_done_check(case.ended),)  # with tools off the case study asserts only the final word
    passed = None if case.case_study_checks is None else case_study_rule.is_case_study_pass(case.ended, done)
    return _build_verdict(case, "na", task_pass=None, parity_pass=passed, failure_class="tools_off")


def _judge_infrastructure(case: CheckedResult) -> Verdict | None:
    error = case.ended.error
    if case.ended.end is not EndReason.PROVIDER_ERROR or error is None or not error.infrastructure:
        return None
    return _build_broken_off(case, "infra", failure_classes.classify_exchange_error(error))


def _judge_broken_off(case: CheckedResult) -> Verdict | None:
    """Return the verdict if the provider ended the run or the trial deadline passed: the trial failed."""
    if case.ended.end is EndReason.PROVIDER_ERROR:
        error = case.ended.error
        return _build_broken_off(
            case, "fail", failure_classes.classify_exchange_error(error) if error else failure_classes.UNNAMED_CLASS
        )
    if case.ended.end is EndReason.DEADLINE_EXCEEDED:
        return _build_broken_off(case, "fail", failure_classes.classify_end(case.ended.end))
    return None


def _judge_checks(case: CheckedResult) -> Verdict:
    """Return the verdict of the checks; without an answer nothing passes, even if no call is expected."""
    has_answer = record_counts.has_answer(case.ended)
    passed = has_answer and case.ended.end in case.good_ends and all(check.ok for check in case.checks)
    by_parity = (
        None
        if case.case_study_checks is None
        else has_answer and case_study_rule.is_case_study_pass(case.ended, case.case_study_checks)
    )
    if passed:
        return _build_verdict(case, "pass", task_pass=True, parity_pass=by_parity)
    problem = _find_cause(case)
    return _build_verdict(
        case, "fail", task_pass=False, parity_pass=by_parity, failure_class=problem.failure_class, bad=problem.bad
    )


def mark_tools_dropped(verdict: Verdict, ended: LoopResult) -> Verdict:
    """Return the verdict for a server that kept the tools from the model: the first cause of a failed task.

    A verdict that does not rest on the model's answers stays as it is.
    """
    if verdict.outcome != "fail" or ended.end in (EndReason.PROVIDER_ERROR, EndReason.DEADLINE_EXCEEDED):
        return verdict
    row = failure_classes.lookup_class("tools_dropped")
    bad = locate_problem(0, path="$.tools", sentence=row.sentence[:1].lower() + row.sentence[1:])
    return replace(verdict, failure_class=row.code, sentence=bad.sentence, first_bad=bad)


_JUDGES: tuple[Callable[[CheckedResult], Verdict | None], ...] = (
    _judge_cancelled,
    _judge_not_applicable,
    _judge_infrastructure,
    _judge_broken_off,
    _judge_checks,
)


def _find_cause(case: CheckedResult) -> Problem:
    wrong = [check for check in case.checks if not check.ok]
    if case.ended.end in case.good_ends and [check.name for check in wrong] == [FINAL_TEXT_CHECK]:
        return Problem(
            "empty_final",
            locate_problem(find_last_turn(case.ended), path=record_counts.CONTENT_PATH, sentence=f"{wrong[0].detail}."),
        )
    found = find_first_problem(case.ended, case.instance.tools, expected=case.expected)
    if found is not None:
        return found
    if case.ended.end in case.good_ends or case.ended.end is EndReason.NO_TOOL_CALLS:
        return case.fallback_problem
    name = failure_classes.classify_end(case.ended.end)
    return Problem(
        name,
        locate_problem(
            find_last_turn(case.ended), sentence=case.ended.message or failure_classes.lookup_class(name).sentence
        ),
    )


def _build_broken_off(case: CheckedResult, outcome: str, failure_class: str) -> Verdict:
    error = case.ended.error
    sentence = error.message if error and error.message else failure_classes.lookup_class(failure_class).sentence
    return _build_verdict(
        case,
        outcome,
        task_pass=None if outcome == "infra" else False,
        parity_pass=None if case.case_study_checks is None else False,
        failure_class=failure_class,
        bad=locate_problem(find_last_turn(case.ended), sentence=sentence),
    )


def _build_verdict(
    case: CheckedResult,
    outcome: str,
    *,
    task_pass: bool | None,
    parity_pass: bool | None,
    failure_class: str = "",
    bad: ProblemLocation | None = None,
) -> Verdict:
    row = failure_classes.lookup_class(failure_class) if failure_class else None
    return Verdict(
        outcome=outcome,
        task_pass=task_pass,
        parity_pass=parity_pass,
        failure_class=failure_class,
        category=_find_category(case, outcome, parity_pass),
        sentence=bad.sentence if bad else row.sentence if row else "",
        rule=case.rule,
        behaviour_seen=case.behaviour_seen,
        avoided=case.avoided,
        checks=_merge_checks(case.checks, case.case_study_checks or ()),
        first_bad=bad,
        counts={**record_counts.count_trial(case.ended), **case.counts},
    )


def _find_category(case: CheckedResult, outcome: str, parity_pass: bool | None) -> str:
    """Return the case study's word if its rule, or Toolbench's if it has none, counts the trial as a failure."""
    failed = parity_pass is False or (parity_pass is None and outcome in ("fail", "infra"))
    return case_study_rule.categorise_failure(case.ended) if failed else ""


def _merge_checks(checks: Sequence[Check], more: Sequence[Check]) -> tuple[Check, ...]:
    """Return each check once, by name."""
    return tuple({check.name: check for check in (*checks, *more)}.values())
