"""Control scenarios, which show whether a model answers at all. They need no call."""

import re
from dataclasses import dataclass, field

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import freeze_row, read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.judging import case_study_rule, verdict
from toolbench.evals.judging.diagnosis import Problem, find_last_turn, locate_problem
from toolbench.evals.record_counts import CALLS_PATH, CONTENT_PATH, has_started_calls
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import load_distractors
from toolbench.evals.scenarios.wording import fill_placeholders
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Check, Instance, Verdict, Workspace

DONE_RULE = (
    "The whole reply is Done, with or without a full stop or exclamation mark. In this scenario, the reply is the task."
)
SUM_RULE = "The reply names the sum in digits, and no tool was called."


@dataclass(eq=False, slots=True)
class ControlScenario:
    """One row of data/controls.json.

    Scenario in evals/types.py explains the other attributes.

    Attributes:
        check: `done`, if the reply must be the case study's final sentence; `sum`, if it must name the sum of two
            numbers, and tools that are not needed are offered.
        system: The wordings of the system text.
        user_text: The wordings of the user's message.
        layer: The policy layer of every instance.
    """

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
    min_requests: int = 1

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        first, second = draw.draw_integer(2, 30), draw.draw_integer(2, 30)
        nonce = f"{draw.draw_integer(0, 16**8 - 1):08x}"
        values = {"first": str(first), "second": str(second), "sum": str(first + second), "nonce": nonce}
        offered = [tool for tool, _ in load_distractors().values()] if self.check == "sum" else []
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(self.system),
            user_text=fill_placeholders(draw.choice(self.user_text), values),
            tools=tuple(draw.shuffle(offered)),
            layer=dict(self.layer),
            values=values,
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the expectation that a reply is made without a call."""
        return ExpectedCalls(False, needs_reply=True)

    def open(self, instance: Instance) -> Workspace:
        """Return the distractor tools with their fixed answers."""
        return FaultyTools({name: answer for name, (_, answer) in load_distractors().items()})

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by the final text and, for the check `sum`, by whether a tool was called."""
        is_done_task = self.check == "done"
        done_checks = (case_study_rule.build_done_check(loop_result),)
        checks = done_checks if is_done_task else _build_sum_checks(instance, loop_result)
        checked = verdict.CheckedResult(
            instance=instance,
            loop_result=loop_result,
            rule=DONE_RULE if is_done_task else SUM_RULE,
            checks=checks,
            case_study_checks=checks if is_done_task else None,
            fallback_problem=_find_problem(loop_result, checks),
            needs_tools=False,
        )
        return verdict.judge(checked)


def load_scenarios() -> tuple[ControlScenario, ...]:
    """Return the scenarios of data/controls.json, in the order of the file."""
    return tuple(ControlScenario(**freeze_row(row)) for row in read_table("controls"))


def _build_sum_checks(instance: Instance, loop_result: LoopResult) -> tuple[Check, ...]:
    number = instance.values["sum"]
    is_named = re.search(rf"(?<!\d){number}(?!\d)", loop_result.final_text) is not None
    detail = "" if is_named else f"the final text is {loop_result.final_text[:80]!r}"
    return Check(f"names {number}", is_named, detail), Check("calls no tool", not has_started_calls(loop_result))


def _find_problem(loop_result: LoopResult, checks: tuple[Check, ...]) -> Problem:
    failed_check = next((check for check in checks if not check.ok), None)
    if failed_check and failed_check.name == "calls no tool":
        calling_turns = (record.turn for record in loop_result.turns if record.answer and record.answer.calls)
        turn = next(calling_turns, find_last_turn(loop_result))
        return Problem(
            "needless_call",
            locate_problem(turn, path=CALLS_PATH, sentence="a tool is called for a question that needs none."),
        )
    detail = failed_check.detail if failed_check else "the run has no answer"
    return Problem("wrong_reply", locate_problem(find_last_turn(loop_result), path=CONTENT_PATH, sentence=f"{detail}."))
