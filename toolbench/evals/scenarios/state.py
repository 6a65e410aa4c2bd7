"""The case study's tool scenarios and a variant: the model reads a workspace and changes one value."""

from dataclasses import dataclass, field

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import freeze_row, read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.judging import case_study_rule, verdict
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, find_last_turn, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import CALLS_PATH, has_calls, iter_calls
from toolbench.evals.scenarios.behaviours import BEHAVIOURS, Behaviour
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import load_distractors, load_state_tools
from toolbench.evals.scenarios.wording import fill_placeholders, render_example
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Check, Instance, Verdict, Workspace
from toolbench.evals.workspace import StateWorkspace

LONG_TEXT_CHARACTERS = 300
SPELT_OUT_VERSION, TASK_ONLY_VERSION = 1, 2
"""The versions of the wording: the first includes every call as JSON, the second only describes the task."""
RULE = (
    "The run ends with a visible answer, and /draft/{key} is {value} in the workspace. "
    "The content of the answer does not matter."
)


@dataclass(eq=False, slots=True)
class StateScenario:
    """One row of data/state_scenarios.json, in one version of its wording.

    An instance with the published wording asks for "bar" in /draft/foo, has the first wording of every rule, and is
    always version 1; only its workspace id and its nonce are random. A drawn instance has random ids, keys, value,
    wordings, distractor tools, order of tools and nonce; a seed gives the same values and tools in every version.

    Attributes:
        rules: The names of the sentences of the system text.
        messages: The expected messages of the model, each as the names of its calls, such as `get+wrong_patch`.
        behaviour: A name of BEHAVIOURS; "" for none.
        big_letters: The number of letters of /draft/big; 0 if the draft is empty.
    """

    slug: str
    title: str
    intent: str
    rules: tuple[str, ...]
    messages: tuple[str, ...]
    layer: JsonObject = field(default_factory=dict)
    behaviour: str = ""
    big_letters: int = 0
    version: int = TASK_ONLY_VERSION
    group: str = "tools"
    control: bool = False
    public: bool = True
    methods: tuple[str, ...] = METHODS
    min_requests: int = 2  # the patch and the final answer
    needs_final_text: bool = True

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        version = SPELT_OUT_VERSION if draw.plain else self.version
        values = _draw_values(draw)
        distractors = dict(draw.draw_sample(list(load_distractors().items()), limit=2))
        return Instance(
            scenario=self.slug,
            version=version,
            kind=kind,
            seed=seed,
            system=self._render_system_text(draw, values, version),
            user_text=fill_placeholders(draw.choice(_read_texts()["user_text"]), values),
            tools=tuple(draw.shuffle([*load_state_tools(), *(tool for tool, _ in distractors.values())])),
            layer=dict(self.layer),
            values={**values, "answers": {name: answer for name, (_, answer) in distractors.items()}},
            prompt_version=str(version),
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the expectation of a call of state_patch, with the requirements of the behaviour."""
        behaviour = BEHAVIOURS.get(self.behaviour, Behaviour())
        return ExpectedCalls(
            True,
            tools=("state_patch",),
            provoked_causes=behaviour.provoked_causes,
            parallel_calls=behaviour.parallel_calls,
        )

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace with the draft and the answers of distractor tools."""
        values = instance.values
        draft = {"big": "x" * self.big_letters} if self.big_letters else {}
        return StateWorkspace(
            values["workspace_id"], writable=values["key"], draft=draft, answers=values.get("answers", {})
        )

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by the state at the end of the run and the scenario's behaviour."""
        state_check = _check_state(instance, workspace)
        behaviour = BEHAVIOURS.get(self.behaviour, Behaviour())
        has_occurred = behaviour.has_occurred(loop_result) if behaviour.has_occurred else None
        behaviour_checks = (Check(behaviour.name, has_occurred),) if has_occurred is not None else ()
        checked = verdict.CheckedResult(
            instance=instance,
            loop_result=loop_result,
            rule=RULE.format(key=instance.values["key"], value=render_short(instance.values["value"])) + behaviour.rule,
            checks=(state_check, *(behaviour_checks if behaviour.required_for_pass else ())),
            case_study_checks=(
                state_check,
                case_study_rule.build_done_check(loop_result),
                *(behaviour_checks if behaviour.required_by_case_study else ()),
            ),
            fallback_problem=_find_problem(instance, loop_result, state_check, behaviour),
            behaviour_seen=has_occurred,
            avoided=behaviour.avoidable and state_check.ok and has_occurred is False,
            needs_final_text=self.needs_final_text,
            expected_codes=behaviour.expected_codes,
            counts=behaviour.counts(loop_result) if behaviour.counts else {},
        )
        return verdict.judge(checked)

    def _render_system_text(self, draw: SeededDraws, values: JsonObject, version: int) -> str:
        texts = _read_texts()
        wordings = texts["rules"] if version == SPELT_OUT_VERSION else texts["rules"] | texts["task_rules"]
        sentences = [fill_placeholders(draw.choice(wordings[name]), values) for name in self.rules]
        rules = "\n".join([f"- {sentence}" if index else sentence for index, sentence in enumerate(sentences)])
        if version != SPELT_OUT_VERSION:
            return rules
        calls = [[texts["calls"][name] for name in message.split("+")] for message in self.messages]
        return f"{rules}\n\n{render_example(texts['example_heading'], fill_placeholders(calls, values), 'Done.')}"


def load_scenarios(version: int = TASK_ONLY_VERSION) -> tuple[StateScenario, ...]:
    """Return the scenarios in this version of their wording, in the table's order."""
    return tuple(StateScenario(**freeze_row(row), version=version) for row in _read_texts()["scenarios"])


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("state_scenarios")
    return texts


def _draw_values(draw: SeededDraws) -> JsonObject:
    words = _read_texts()["words"]
    is_drawn = not draw.plain
    key, wrong_key = draw.source.sample(words["keys"], 2) if is_drawn else ("foo", "wrong")
    return {
        "workspace_id": draw.draw_uuid(),
        "key": key,
        "wrong_key": wrong_key,
        "value": f"{draw.choice(words['values'])} {draw.draw_integer(10, 99)}" if is_drawn else "bar",
        "request_id": f"{draw.choice(words['request_ids'])}-{draw.draw_integer(100, 999)}" if is_drawn else "r1",
        "nonce": f"{draw.draw_integer(0, 16**8 - 1):08x}",
        "long_text": "x" * LONG_TEXT_CHARACTERS,
    }


def _check_state(instance: Instance, workspace: Workspace) -> Check:
    key, expected = instance.values["key"], instance.values["value"]
    value = workspace.snapshot()["draft"].get(key)
    name = f"/draft/{key} is {render_short(expected)}"
    return Check(name, value == expected, "" if value == expected else f"it is {render_short(value)}")


def _find_problem(instance: Instance, loop_result: LoopResult, state_check: Check, behaviour: Behaviour) -> Problem:
    """Return the problem of a failed trial, for use if neither its turns nor its end show one."""
    if not has_calls(loop_result):
        return NO_TOOL_CALLS_PROBLEM
    if state_check.ok:
        return Problem(behaviour.failure_class, locate_problem(0, path=CALLS_PATH, sentence=behaviour.missing))
    patches = [call for call in iter_calls(loop_result) if call.tool == "state_patch" and call.ok]
    if not patches:
        sentence = "the run ends here; state_patch was never called."
        return Problem("never_patched", locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence))
    last_patch = patches[-1]
    key, expected = instance.values["key"], instance.values["value"]
    sentence = f"/draft/{key} should be {render_short(expected)}; {state_check.detail}."
    return Problem(
        "wrong_state", locate_problem(last_patch.turn, call=last_patch.index, path="$.ops", sentence=sentence)
    )
