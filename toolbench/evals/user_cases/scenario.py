"""A case of one's own, tried and judged like any scenario. It is one instance: nothing about it is drawn."""

from dataclasses import dataclass

from toolbench.engine.events import End, Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.expected_calls import Due
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import Problem, at, last_turn
from toolbench.evals.judging.messages import shown
from toolbench.evals.record_counts import CALLS, CONTENT, any_calls, called
from toolbench.evals.types import DRAWN, Check, Instance, Verdict, Workspace
from toolbench.evals.user_cases.calls import Comparison, checks_of, compare, due
from toolbench.evals.user_cases.checks import run_check
from toolbench.evals.user_cases.definition import OwnCase
from toolbench.evals.user_cases.matchers import mismatches
from toolbench.evals.user_cases.simulated_tools import SimulatedTools, value_in

GROUP = "own"
RULE = "Every call that was expected is made, each of its arguments is as it was asked for, and no other call is made."
_RULES = (
    ("calls", RULE),
    ("others", "Calls that nobody named do not matter."),
    ("no_call", "An answer comes, and no tool is called."),
    ("state", "The simulated state at the end is the one that was asked for."),
    ("checks", "Every check holds."),
)


@dataclass(eq=False, slots=True)
class OwnScenario:
    """One version of a case."""

    slug: str
    version: int
    title: str
    case: OwnCase
    public: bool = False
    group: str = GROUP
    intent: str = "A case of your own."
    control: bool = False
    methods: tuple[str, ...] = METHODS
    straight_requests: int = 1

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        system, history, user_text = _split(self.case)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=system,
            user_text=user_text,
            tools=self.case.definitions,
            history=history,
            layer=self._layer(),
            prompt_version=str(self.version),
        )

    def due(self, instance: Instance) -> Due:
        return due(self.case)

    def open(self, instance: Instance) -> Workspace:
        return SimulatedTools(self.case.results, self.case.initial)

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        expect = self.case.expect
        comparison = compare(expect, ended)
        checks = (
            *(checks_of(comparison, others=expect.others) if expect.calls else ()),
            *((Check("no tool is called", not any_calls(ended)),) if expect.no_call else ()),
            *(_state_check(pointer, wanted, workspace) for pointer, wanted in expect.state.items()),
            *(run_check(row, ended) for row in expect.checks),
        )
        ends = {End.FINAL, End.MAX_TURNS_EXCEEDED} if self.case.turns else {End.FINAL}
        case = verdict.Case(
            instance=instance,
            ended=ended,
            rule=self.rule,
            checks=checks,
            parity_checks=None,
            otherwise=_otherwise(self.case, ended, comparison, checks),
            good_ends=frozenset(ends),
        )
        return verdict.judge(case)

    @property
    def rule(self) -> str:
        return " ".join(text for name, text in _RULES if getattr(self.case.expect, name))

    def _layer(self) -> JsonObject:
        layer: JsonObject = {}
        if self.case.turns:
            layer["max_turns"] = self.case.turns
        if not self.case.expect.calls:
            layer["tool_use_mode"] = "relaxed"
        if self.case.parallel:
            layer["request_overrides"] = {"parallel_tool_calls": True}
        return layer


def _split(case: OwnCase) -> tuple[str, tuple[JsonObject, ...], str]:
    """The system text in front, the messages between, and what the user says last."""
    messages = list(case.messages)
    first = messages[0]
    leads = first.get("role") == "system" and isinstance(first.get("content"), str) and len(messages) > 1
    system = str(first["content"]) if leads else ""
    return system, tuple(messages[1 if leads else 0 : -1]), str(messages[-1]["content"])


def _state_check(pointer: str, wanted: object, workspace: Workspace) -> Check:
    found = value_in(workspace.snapshot(), pointer)
    wrong = "; ".join(one.says for one in mismatches(wanted, found))
    return Check(f"{pointer} is {shown(wanted)}", not wrong, wrong)


def _otherwise(case: OwnCase, ended: Ended, comparison: Comparison, checks: tuple[Check, ...]) -> Problem:
    """What to say when the record shows no trouble and a check fails."""
    if case.expect.calls and not any_calls(ended):
        return Problem("no_tool_calls", at(0, path=CALLS, what="the answer is text and calls no tool."))
    if case.expect.no_call and any_calls(ended):
        first = next(called(ended), None)
        turn, tool = (first.turn, first.tool) if first else (0, "a tool")
        return Problem("needless_call", at(turn, path=CALLS, what=f"{tool} is called; no call was expected."))
    return _of_calls(case, ended, comparison) or _of_checks(ended, checks)


def _of_calls(case: OwnCase, ended: Ended, comparison: Comparison) -> Problem | None:
    for pair in comparison.pairs:
        wrong = next((one for found in pair.wrong.values() for one in found), None)
        if pair.made is None:
            others = ", ".join(one.tool for one in comparison.others)
            what = f"{pair.expected.name} was expected; {f'called was {others}' if others else 'it was not called'}."
            return Problem("wrong_arguments", at(last_turn(ended), path=CALLS, what=what))
        if wrong is not None:
            bad = at(pair.made.turn, call=pair.made.place, path=wrong.path, what=f"{wrong.path}: {wrong.says}.")
            return Problem("wrong_arguments", bad)
    if comparison.others and case.expect.calls and not case.expect.others:
        one = comparison.others[0]
        what = f"{one.tool} is called beside what was expected."
        return Problem("too_many_calls", at(one.turn, call=one.place, what=what))
    return None


def _of_checks(ended: Ended, checks: tuple[Check, ...]) -> Problem:
    wrong = next((check for check in checks if not check.ok), None)
    if wrong is None:
        return Problem("wrong_reply", at(last_turn(ended), path=CONTENT, what="the run has no answer."))
    about_answer = wrong.name.startswith("the answer")
    what = f"it does not hold that {wrong.name}{f': {wrong.detail}' if wrong.detail else ''}."
    return Problem("wrong_reply" if about_answer else "wrong_state", at(last_turn(ended), path=CONTENT, what=what))
