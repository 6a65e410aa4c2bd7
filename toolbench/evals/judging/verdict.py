"""From what a scenario checked to one verdict: the order of questions is the same for every scenario."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from toolbench.engine.events import ANSWERS, End, Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.values import light
from toolbench.engine.visible_text import is_blank
from toolbench.evals import record_counts
from toolbench.evals.judging import case_study_rule, failure_classes
from toolbench.evals.judging.diagnosis import Problem, at, first_problem, last_turn
from toolbench.evals.types import Check, FirstBad, Instance, Verdict

VERSION = 2  # of the questions below and of what they call; one more whenever a verdict may change
NEW_CLASSES = {2: frozenset({"empty_final", "empty_answer"})}  # blank: without a visible character
"""By version: the failure classes that it newly gives. A verdict of an older version changes to these and no others."""

FINAL_TEXT = "the run ends with a visible text"  # name of the check


@light(frozen=True, slots=True)
class Case:
    """What a scenario found. `checks` decide the task pass together with an end in `good_ends`. `parity_checks` are
    the case study's assertions, None where it has no such scenario. `otherwise` says what went wrong when the record
    shows no problem and a check fails. `expected` are error codes that belong to the task. `needs_final_text`: a run
    whose last message is blank fails the task, whatever its calls did."""

    instance: Instance
    ended: Ended
    rule: str
    checks: tuple[Check, ...]
    parity_checks: tuple[Check, ...] | None
    otherwise: Problem
    good_ends: frozenset[End] = ANSWERS
    needs_tools: bool = True
    needs_final_text: bool = False
    behaviour_seen: bool | None = None
    avoided: bool = False
    expected: tuple[str, ...] = ()
    counts: JsonObject = field(default_factory=dict)


def judge(case: Case) -> Verdict:
    """Cancelled, not applicable, infrastructure, our own failures, then the checks: the first that fits decides."""
    checked = _with_final_text(case) if case.needs_final_text else case
    return next(verdict for question in _QUESTIONS if (verdict := question(checked)) is not None)


def _with_final_text(case: Case) -> Case:
    """Add the check that the last message is not blank."""
    blank = is_blank(case.ended.final_text)
    check = Check(FINAL_TEXT, not blank, "the last message has no visible character" if blank else "")
    return replace(case, checks=(*case.checks, check))


def _cancelled(case: Case) -> Verdict | None:
    if case.ended.end not in (End.CANCELLED, End.BUDGET_SPENT):
        return None
    return _verdict(
        case, "cancelled", task_pass=None, parity_pass=None, failure_class=failure_classes.of_end(case.ended.end)
    )


def _not_applicable(case: Case) -> Verdict | None:
    if not (case.needs_tools and record_counts.tools_off(case.ended)):
        return None
    done = (case_study_rule.done_check(case.ended),)  # with tools off the case study asserts the final word alone
    passed = None if case.parity_checks is None else case_study_rule.passes(case.ended, done)
    return _verdict(case, "na", task_pass=None, parity_pass=passed, failure_class="tools_off")


def _infrastructure(case: Case) -> Verdict | None:
    error = case.ended.error
    if case.ended.end is not End.PROVIDER_ERROR or error is None or not error.infrastructure:
        return None
    return _broken_off(case, "infra", failure_classes.of_exchange(error))


def _broken(case: Case) -> Verdict | None:
    """The endpoint's refusal, the model's failure dressed as one, or our own deadline: a failure of the trial."""
    if case.ended.end is End.PROVIDER_ERROR:
        error = case.ended.error
        return _broken_off(case, "fail", failure_classes.of_exchange(error) if error else failure_classes.UNNAMED)
    if case.ended.end is End.DEADLINE_EXCEEDED:
        return _broken_off(case, "fail", failure_classes.of_end(case.ended.end))
    return None


def _checked(case: Case) -> Verdict:
    """A silent endpoint passes nothing, also where no call is expected."""
    said = record_counts.answered(case.ended)
    passed = said and case.ended.end in case.good_ends and all(check.ok for check in case.checks)
    by_parity = None if case.parity_checks is None else said and case_study_rule.passes(case.ended, case.parity_checks)
    if passed:
        return _verdict(case, "pass", task_pass=True, parity_pass=by_parity)
    problem = _cause(case)
    return _verdict(
        case, "fail", task_pass=False, parity_pass=by_parity, failure_class=problem.failure_class, bad=problem.bad
    )


def without_tools(verdict: Verdict, ended: Ended) -> Verdict:
    """The verdict where the server kept the tools from the model: that is the first cause of a task that failed. What
    was not judged by its answers stays as it is."""
    if verdict.outcome != "fail" or ended.end in (End.PROVIDER_ERROR, End.DEADLINE_EXCEEDED):
        return verdict
    row = failure_classes.find("tools_dropped")
    bad = at(0, path="$.tools", what=row.sentence[:1].lower() + row.sentence[1:])
    return replace(verdict, failure_class=row.code, sentence=bad.sentence, first_bad=bad)


_QUESTIONS: tuple[Callable[[Case], Verdict | None], ...] = (
    _cancelled,
    _not_applicable,
    _infrastructure,
    _broken,
    _checked,
)


def _cause(case: Case) -> Problem:
    wrong = [check for check in case.checks if not check.ok]
    if case.ended.end in case.good_ends and [check.name for check in wrong] == [FINAL_TEXT]:
        return Problem("empty_final", at(last_turn(case.ended), path=record_counts.CONTENT, what=f"{wrong[0].detail}."))
    found = first_problem(case.ended, case.instance.tools, expected=case.expected)
    if found is not None:
        return found
    if case.ended.end in case.good_ends or case.ended.end is End.NO_TOOL_CALLS:
        return case.otherwise
    name = failure_classes.of_end(case.ended.end)
    return Problem(name, at(last_turn(case.ended), what=case.ended.message or failure_classes.find(name).sentence))


def _broken_off(case: Case, outcome: str, failure_class: str) -> Verdict:
    error = case.ended.error
    what = error.message if error and error.message else failure_classes.find(failure_class).sentence
    return _verdict(
        case,
        outcome,
        task_pass=None if outcome == "infra" else False,
        parity_pass=None if case.parity_checks is None else False,
        failure_class=failure_class,
        bad=at(last_turn(case.ended), what=what),
    )


def _verdict(
    case: Case,
    outcome: str,
    *,
    task_pass: bool | None,
    parity_pass: bool | None,
    failure_class: str = "",
    bad: FirstBad | None = None,
) -> Verdict:
    row = failure_classes.find(failure_class) if failure_class else None
    return Verdict(
        outcome=outcome,
        task_pass=task_pass,
        parity_pass=parity_pass,
        failure_class=failure_class,
        category=_category(case, outcome, parity_pass),
        sentence=bad.sentence if bad else row.sentence if row else "",
        rule=case.rule,
        behaviour_seen=case.behaviour_seen,
        avoided=case.avoided,
        checks=_all_checks(case.checks, case.parity_checks or ()),
        first_bad=bad,
        counts={**record_counts.counts(case.ended), **case.counts},
    )


def _category(case: Case, outcome: str, parity_pass: bool | None) -> str:
    """The case study's word wherever its rule, or ours where it has none, calls the trial a failure."""
    failed = parity_pass is False or (parity_pass is None and outcome in ("fail", "infra"))
    return case_study_rule.category(case.ended) if failed else ""


def _all_checks(checks: Sequence[Check], more: Sequence[Check]) -> tuple[Check, ...]:
    """Each check once, by name."""
    return tuple({check.name: check for check in (*checks, *more)}.values())
