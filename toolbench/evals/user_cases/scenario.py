"""The scenario of a user's test case. It has a single instance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.loop.run_state import FurtherMessage
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.json_pointers import find_pointer_value
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, find_last_turn, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import CALLS_PATH, CONTENT_PATH, has_calls, has_started_calls, iter_calls
from toolbench.evals.scenarios.behaviours import BEHAVIOURS, Behaviour
from toolbench.evals.types import DRAWN, Check, Instance, Verdict, Workspace
from toolbench.evals.user_cases.calls import CallComparison, CallPair, build_expected_calls, compare_calls, iter_checks
from toolbench.evals.user_cases.checks import find_failure_class, run_check
from toolbench.evals.user_cases.definition import CaseExpectation, UserCase
from toolbench.evals.user_cases.fault_rows import list_fault_codes
from toolbench.evals.user_cases.matchers import iter_mismatches
from toolbench.evals.user_cases.options import build_settings_layer
from toolbench.evals.user_cases.simulated_tools import SimulatedTools

ClassedCheck = tuple[Check, str]
"""A check, and the failure class of a trial that fails because of it."""

USER_CASE_GROUP = "own"
# Methods that make several calls in one message without further settings.
_SEVERAL_CALLS_METHODS = ("native", "template")


def is_user_case_group(group: str) -> bool:
    """Return whether a group of scenarios consists of users' test cases.

    The name of such a group is `own`, or `own_` followed by the group that the cases name.
    """
    return group == USER_CASE_GROUP or group.startswith(f"{USER_CASE_GROUP}_")


@dataclass(eq=False, slots=True)
class UserCaseScenario:
    """The scenario of one version of a test case.

    `group`, `control`, `methods` and `min_requests` are set from the case.
    """

    slug: str
    version: int
    title: str
    case: UserCase
    public: bool = False
    group: str = USER_CASE_GROUP
    intent: str = "A test case of yours."
    control: bool = False
    methods: tuple[str, ...] = METHODS
    min_requests: int = 1

    def __post_init__(self) -> None:
        """Set the fields that depend on the case."""
        case = self.case
        self.group = f"{USER_CASE_GROUP}_{case.group}" if case.group else USER_CASE_GROUP
        self.control = case.control
        expected_calls = build_expected_calls(case)
        # With a workspace, a trial that needs calls sends one request for the patch and one for the answer.
        self.min_requests = 1 + len(case.further) + bool(case.workspace and expected_calls.needs_call)
        if case.behaviour == "mixed_turn" or expected_calls.parallel_calls > 1:
            self.methods = _SEVERAL_CALLS_METHODS

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance, whose task is the same for every `seed` and `kind`."""
        system, history, user_text = _split_messages(self.case)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=system,
            user_text=user_text,
            tools=self.case.definitions,
            history=history,
            layer=self._build_layer(),
            prompt_version=str(self.version),
            further=tuple(FurtherMessage(text) for text in self.case.further),
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the calls that the case expects."""
        return build_expected_calls(self.case)

    def open(self, instance: Instance) -> Workspace:
        """Return the simulated tools with their initial state."""
        return SimulatedTools(self.case.results, self.case.initial, self.case.workspace)

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by the expectations and the behaviour of the case."""
        expect = self.case.expect
        comparison = compare_calls(expect, loop_result)
        call_checks = iter_checks(comparison, are_others_allowed=expect.others) if expect.calls else ()
        other_checks = tuple(_iter_classed_checks(expect, loop_result, workspace))
        checks = (*call_checks, *(check for check, _ in other_checks))
        behaviour = BEHAVIOURS.get(self.case.behaviour, Behaviour())
        has_occurred = behaviour.has_occurred(loop_result) if behaviour.has_occurred else None
        all_hold = all(check.ok for check in checks)
        required = (Check(behaviour.name, bool(has_occurred)),) if behaviour.required_for_pass else ()
        good_ends = {EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED} if self.case.turns else {EndReason.FINAL}
        checked = verdict.CheckedResult(
            instance=instance,
            loop_result=loop_result,
            rule=self.rule + behaviour.rule,
            checks=(*checks, *required),
            case_study_checks=None,
            fallback_problem=_build_missing_behaviour_problem(behaviour)
            if all_hold and required
            else _find_problem(self.case, loop_result, comparison, other_checks),
            good_ends=frozenset(good_ends),
            needs_tools=not self.case.control,
            behaviour_seen=has_occurred,
            avoided=behaviour.avoidable and all_hold and has_occurred is False,
            expected_codes=(*behaviour.expected_codes, *list_fault_codes(self.case)),
            counts=behaviour.counts(loop_result) if behaviour.counts else {},
        )
        return verdict.judge(checked)

    @property
    def rule(self) -> str:
        """Return the rule of a pass in sentences."""
        expect = self.case.expect
        sentences = (
            (expect.calls, "Every expected call is made with the expected arguments."),
            (expect.calls, "Other calls are allowed." if expect.others else "No other call is made."),
            (expect.no_call, "The model answers and calls no tool."),
            (expect.state, "The simulated state at the end is the expected one."),
            (expect.checks, "Every check holds."),
        )
        return " ".join(sentence for applies, sentence in sentences if applies)

    def _build_layer(self) -> JsonObject:
        layer: JsonObject = {}
        if self.case.turns:
            layer["max_turns"] = self.case.turns
        if not self.case.expect.calls:
            layer["tool_use_mode"] = "relaxed"
        settings = build_settings_layer(self.case.settings)
        overrides = settings.pop("request_overrides", {})
        if self.case.parallel:
            overrides = {"parallel_tool_calls": True, **overrides}
        return layer | settings | ({"request_overrides": overrides} if overrides else {})


def _split_messages(case: UserCase) -> tuple[str, tuple[JsonObject, ...], str]:
    """Split the messages of a case into system text, history and the user's text.

    Returns:
        The content of the first message if it is a system message with a text, else ""; the other messages except the
        last one; and the text of the last message, which is the user's.
    """
    messages = list(case.messages)
    first = messages[0]
    has_system = first.get("role") == "system" and isinstance(first.get("content"), str) and len(messages) > 1
    system = str(first["content"]) if has_system else ""
    return system, tuple(messages[1 if has_system else 0 : -1]), str(messages[-1]["content"])


def _iter_classed_checks(
    expect: CaseExpectation, loop_result: LoopResult, workspace: Workspace
) -> Iterator[ClassedCheck]:
    """Yield the checks other than those of expected calls, each with its failure class.

    If the case expects no call, and no row of its checks requires a text, a check for a visible text is added.
    """
    if expect.no_call:
        yield Check("no tool is called", not has_started_calls(loop_result)), "needless_call"
        kinds = {kind for row in expect.checks for kind in row}
        if not any(kind.startswith("answer_") and kind != "answer_lacks" for kind in kinds):
            yield run_check({"answer_given": True}, loop_result), "wrong_reply"
    for pointer, expected_value in expect.state.items():
        yield _check_state(pointer, expected_value, workspace), "wrong_state"
    for row in expect.checks:
        yield run_check(row, loop_result), find_failure_class(row, loop_result)


def _check_state(pointer: str, expected: object, workspace: Workspace) -> Check:
    value = find_pointer_value(workspace.snapshot(), pointer)
    detail = "; ".join(mismatch.message for mismatch in iter_mismatches(expected, value))
    return Check(f"{pointer} is {render_short(expected)}", not detail, detail)


def _find_problem(
    case: UserCase, loop_result: LoopResult, comparison: CallComparison, other_checks: Sequence[ClassedCheck]
) -> Problem:
    """Return the problem of a trial whose run ended without an error but does not meet the expectations."""
    if case.expect.calls and not has_calls(loop_result):
        return NO_TOOL_CALLS_PROBLEM
    if case.expect.no_call and has_calls(loop_result):
        first = next(iter_calls(loop_result), None)
        turn, tool = (first.turn, first.tool) if first else (0, "a tool")
        return Problem(
            "needless_call", locate_problem(turn, path=CALLS_PATH, sentence=f"{tool} is called; no call is expected.")
        )
    return _find_call_problem(case, loop_result, comparison) or _find_check_problem(loop_result, other_checks)


def _build_missing_behaviour_problem(behaviour: Behaviour) -> Problem:
    return Problem(behaviour.failure_class, locate_problem(0, path=CALLS_PATH, sentence=behaviour.missing))


def _find_call_problem(case: UserCase, loop_result: LoopResult, comparison: CallComparison) -> Problem | None:
    for pair in comparison.pairs:
        if pair.made is None:
            return _build_missing_call_problem(pair.expected.name, case.expect, loop_result, comparison)
        if problem := _find_argument_problem(pair):
            return problem
    if comparison.others and case.expect.calls and not case.expect.others:
        call = comparison.others[0]
        sentence = f"{call.tool} is called in addition to the expected calls."
        return Problem("too_many_calls", locate_problem(call.turn, call=call.index, sentence=sentence))
    return None


def _build_missing_call_problem(
    tool: str, expect: CaseExpectation, loop_result: LoopResult, comparison: CallComparison
) -> Problem:
    """Return the problem of a trial in which an expected call of `tool` was not found.

    The calls were made in another order, another tool was called instead, or the call is missing.
    """
    unordered = compare_calls(replace(expect, ordered=False), loop_result)
    if expect.ordered and all(pair.made is not None for pair in unordered.pairs):
        sentence = f"the expected call of {tool} is not made in the expected order."
        location = locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence)
        problems = filter(None, map(_find_argument_problem, unordered.pairs))
        return next(problems, Problem("wrong_order", location))
    names = {call.name for call in expect.calls}
    wrong_call = next((call for call in comparison.others if call.tool not in names and not expect.others), None)
    if wrong_call is not None:
        sentence = f"{wrong_call.tool} is called; {tool} was expected."
        return Problem("wrong_tool", locate_problem(wrong_call.turn, call=wrong_call.index, sentence=sentence))
    sentence = f"the run ends here; an expected call of {tool} is missing."
    return Problem("missing_call", locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence))


def _find_argument_problem(pair: CallPair) -> Problem | None:
    """Return the problem of the first wrong argument of a call; None if all are right or the call is missing."""
    mismatch = next((mismatch for mismatches in pair.mismatches.values() for mismatch in mismatches), None)
    if pair.made is None or mismatch is None:
        return None
    sentence = f"{mismatch.path}: {mismatch.message}."
    location = locate_problem(pair.made.turn, call=pair.made.index, path=mismatch.path, sentence=sentence)
    return Problem("wrong_arguments", location)


def _find_check_problem(loop_result: LoopResult, checks: Sequence[ClassedCheck]) -> Problem:
    failed_check, failure_class = next(((check, name) for check, name in checks if not check.ok), (None, ""))
    if failed_check is None:
        return Problem(
            "wrong_reply",
            locate_problem(find_last_turn(loop_result), path=CONTENT_PATH, sentence="the run has no answer."),
        )
    path = CONTENT_PATH if failure_class in ("wrong_reply", "wrong_state") else CALLS_PATH
    detail = f"; {failed_check.detail}" if failed_check.detail else ""
    sentence = f"a check fails: {failed_check.name}{detail}."
    return Problem(
        failure_class,
        locate_problem(find_last_turn(loop_result), path=path, sentence=sentence),
    )
