"""The scenarios of the case study that read a workspace, change one value and say Done."""

from dataclasses import dataclass, field

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.data_files import frozen_row, read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.judging import case_study_rule, verdict
from toolbench.evals.judging.diagnosis import Problem, at, last_turn
from toolbench.evals.judging.messages import shown
from toolbench.evals.record_counts import CALLS, any_calls, called
from toolbench.evals.scenarios.behaviours import BEHAVIOURS, Behaviour
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import distractors, state_tools
from toolbench.evals.scenarios.wording import example_block, fill
from toolbench.evals.types import DRAWN, PARITY, Check, Instance, Verdict, Workspace
from toolbench.evals.workspace import StateWorkspace

LONG_LETTERS = 300
SPELT_OUT, TASK_ONLY = 1, 2
"""Versions of the wording: the first ends with every call as JSON, the second tells the task only."""
RULE = (
    "The run ends with a visible answer, and /draft/{key} is {value} in the workspace. "
    "What the answer says decides nothing."
)


@dataclass(eq=False, slots=True)
class StateScenario:
    """One row of data/state_scenarios.json, in one version of its wording. Its parity instance sets /draft/foo to
    "bar", in the first wording of every rule, and is version 1 for good; a drawn one draws ids, key, value, wording,
    order of tools, other tools and a nonce. One seed draws the same values and tools in every version."""

    slug: str
    title: str
    intent: str
    rules: tuple[str, ...]
    messages: tuple[str, ...]
    layer: JsonObject = field(default_factory=dict)
    behaviour: str = ""
    big_letters: int = 0
    version: int = TASK_ONLY
    group: str = "tools"
    control: bool = False
    public: bool = True
    methods: tuple[str, ...] = METHODS
    straight_requests: int = 2  # the change, and the answer after it
    needs_final_text: bool = True

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
        version = SPELT_OUT if draw.plain else self.version
        values = _draw_values(draw)
        others = dict(draw.some(list(distractors().items()), most=2))
        return Instance(
            scenario=self.slug,
            version=version,
            kind=kind,
            seed=seed,
            system=self._system(draw, values, version),
            user_text=fill(draw.choice(_texts()["user_text"]), values),
            tools=tuple(draw.shuffled([*state_tools(), *(tool for tool, _ in others.values())])),
            layer=dict(self.layer),
            values={**values, "answers": {name: answer for name, (_, answer) in others.items()}},
            prompt_version=str(version),
        )

    def due(self, instance: Instance) -> Due:
        behaviour = BEHAVIOURS.get(self.behaviour, Behaviour())
        return Due(True, tools=("state_patch",), provoked=behaviour.provoked, together=behaviour.together)

    def open(self, instance: Instance) -> Workspace:
        values = instance.values
        draft = {"big": "x" * self.big_letters} if self.big_letters else {}
        return StateWorkspace(
            values["workspace_id"], writable=values["key"], draft=draft, answers=values.get("answers", {})
        )

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        state = _state_check(instance, workspace)
        behaviour = BEHAVIOURS.get(self.behaviour, Behaviour())
        seen = behaviour.seen(ended) if behaviour.seen else None
        extra = (Check(behaviour.name, seen),) if seen is not None else ()
        case = verdict.Case(
            instance=instance,
            ended=ended,
            rule=RULE.format(key=instance.values["key"], value=shown(instance.values["value"])) + behaviour.rule,
            checks=(state, *(extra if behaviour.demanded else ())),
            parity_checks=(state, case_study_rule.done_check(ended), *(extra if behaviour.asserted else ())),
            otherwise=_otherwise(instance, ended, state, behaviour),
            behaviour_seen=seen,
            avoided=behaviour.avoidable and state.ok and seen is False,
            needs_final_text=self.needs_final_text,
            expected=behaviour.expected,
            counts=behaviour.counts(ended) if behaviour.counts else {},
        )
        return verdict.judge(case)

    def _system(self, draw: Draw, values: JsonObject, version: int) -> str:
        texts = _texts()
        wordings = texts["rules"] if version == SPELT_OUT else texts["rules"] | texts["task_rules"]
        sentences = [draw.choice(wordings[name]) for name in self.rules]
        rules = fill(
            "\n".join(f"- {sentence}" if place else sentence for place, sentence in enumerate(sentences)), values
        )
        if version != SPELT_OUT:
            return str(rules)
        calls = [[texts["calls"][name] for name in message.split("+")] for message in self.messages]
        return f"{rules}\n\n{example_block(texts['example_heading'], fill(calls, values), 'Done.')}"


def load(version: int = TASK_ONLY) -> tuple[StateScenario, ...]:
    """Return the rows of the table in its order, in this version of their wording."""
    return tuple(StateScenario(**frozen_row(row), version=version) for row in _texts()["scenarios"])


def _texts() -> JsonObject:
    texts: JsonObject = read_table("state_scenarios")
    return texts


def _draw_values(draw: Draw) -> JsonObject:
    words = _texts()["words"]
    drawn = not draw.plain
    key, wrong_key = draw.source.sample(words["keys"], 2) if drawn else ("foo", "wrong")
    return {
        "workspace_id": draw.identifier(),
        "key": key,
        "wrong_key": wrong_key,
        "value": f"{draw.choice(words['values'])} {draw.number(10, 99)}" if drawn else "bar",
        "request_id": f"{draw.choice(words['request_ids'])}-{draw.number(100, 999)}" if drawn else "r1",
        "nonce": f"{draw.number(0, 16**8 - 1):08x}",
        "long_text": "x" * LONG_LETTERS,
    }


def _state_check(instance: Instance, workspace: Workspace) -> Check:
    key, wanted = instance.values["key"], instance.values["value"]
    found = workspace.snapshot()["draft"].get(key)
    name = f"/draft/{key} is {shown(wanted)}"
    return Check(name, found == wanted, "" if found == wanted else f"it is {shown(found)}")


def _otherwise(instance: Instance, ended: Ended, state: Check, behaviour: Behaviour) -> Problem:
    """What to say when every call went well and the trial still fails."""
    last = last_turn(ended)
    if not any_calls(ended):
        return Problem("no_tool_calls", at(0, path=CALLS, what="the answer is text and calls no tool."))
    if state.ok:
        return Problem(behaviour.failure_class, at(0, path=CALLS, what=behaviour.missing))
    patches = [one for one in called(ended) if one.tool == "state_patch" and one.ok]
    if not patches:
        return Problem("never_patched", at(last, path=CALLS, what="the run ends here; state_patch was never called."))
    one = patches[-1]
    key, wanted = instance.values["key"], instance.values["value"]
    what = f"/draft/{key} should be {shown(wanted)}; {state.detail}."
    return Problem("wrong_state", at(one.turn, call=one.place, path="$.ops", what=what))
