"""The controls: they show whether a model answers at all, not whether it calls tools."""

import re
from dataclasses import dataclass, field

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.data_files import frozen_row, read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.judging import case_study_rule, verdict
from toolbench.evals.judging.diagnosis import Problem, at, last_turn
from toolbench.evals.record_counts import CALLS, CONTENT, any_calls
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import distractors
from toolbench.evals.scenarios.wording import fill
from toolbench.evals.types import DRAWN, PARITY, Check, Instance, Verdict, Workspace
from toolbench.evals.workspace import FixedAnswers

DONE_RULE = "The whole reply is Done, with or without a full stop or exclamation mark. Here the final word is the task."
SUM_RULE = "The reply names the sum in digits, and no tool was called."


@dataclass(eq=False, slots=True)
class Control:
    """One row of data/controls.json: `check` is done (the fixed sentence) or sum (of two numbers)."""

    slug: str
    title: str
    intent: str
    check: str
    system: tuple[str, ...]
    user_text: tuple[str, ...]
    layer: JsonObject = field(default_factory=dict)
    version: int = 1
    group: str = "control"
    control: bool = True
    public: bool = True
    methods: tuple[str, ...] = METHODS
    straight_requests: int = 1

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
        first, second = draw.number(2, 30), draw.number(2, 30)
        nonce = f"{draw.number(0, 16**8 - 1):08x}"
        values = {"first": str(first), "second": str(second), "sum": str(first + second), "nonce": nonce}
        offered = [tool for tool, _ in distractors().values()] if self.check == "sum" else []
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(self.system),
            user_text=fill(draw.choice(self.user_text), values),
            tools=tuple(draw.shuffled(offered)),
            layer=dict(self.layer),
            values=values,
        )

    def due(self, instance: Instance) -> Due:
        return Due(False, reply=True)

    def open(self, instance: Instance) -> Workspace:
        return FixedAnswers({name: answer for name, (_, answer) in distractors().items()})

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        done = self.check == "done"
        checks = (case_study_rule.done_check(ended),) if done else _sum_checks(instance, ended)
        case = verdict.Case(
            instance=instance,
            ended=ended,
            rule=DONE_RULE if done else SUM_RULE,
            checks=checks,
            parity_checks=checks if done else None,
            otherwise=_otherwise(ended, checks),
            needs_tools=False,
        )
        return verdict.judge(case)


def load() -> tuple[Control, ...]:
    return tuple(Control(**frozen_row(row)) for row in read_table("controls"))


def _sum_checks(instance: Instance, ended: Ended) -> tuple[Check, ...]:
    number = instance.values["sum"]
    named = re.search(rf"(?<!\d){number}(?!\d)", ended.final_text) is not None
    detail = "" if named else f"the final text is {ended.final_text[:80]!r}"
    return Check(f"names {number}", named, detail), Check("calls no tool", not any_calls(ended))


def _otherwise(ended: Ended, checks: tuple[Check, ...]) -> Problem:
    wrong = next((check for check in checks if not check.ok), None)
    if wrong and wrong.name == "calls no tool":
        turn = next(record.turn for record in ended.turns if record.answer and record.answer.calls)
        return Problem("needless_call", at(turn, path=CALLS, what="a tool is called for a question that needs none."))
    detail = wrong.detail if wrong else "the run has no answer"
    return Problem("wrong_reply", at(last_turn(ended), path=CONTENT, what=f"{detail}."))
