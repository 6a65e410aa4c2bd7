"""One call of classify_intent: a choice of three, in which one valid call in three is right by chance."""

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.scenarios import single_call
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import build_definition
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Verdict, Workspace
from toolbench.evals.workspace import FixedAnswerTools


class IntentScenario:
    """A question to be sorted into one of three workspaces.

    The workspaces alternate by `seed`, so that any three consecutive seeds are balanced; a drawn instance also draws
    question and wording.
    """

    slug = "classify_intent"
    version = 1
    title = "intent: a choice of three"
    group = "intent"
    intent = "Sort a question into one of three workspaces: a valid call is easy to force, a right one is not."
    control = False
    public = True
    methods: tuple[str, ...] = METHODS
    straight_requests = 1

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        texts = _read_texts()
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        workspaces: dict[str, list[str]] = texts["workspaces"]
        workspace_id = list(workspaces)[seed % len(workspaces)]
        questions = workspaces[workspace_id]
        place = seed // len(workspaces) % len(questions)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(texts["system"]),
            user_text=questions[place] if kind == PUBLISHED_WORDING else draw.choice(questions),
            tools=(build_definition(texts["tool"]),),
            layer=dict(single_call.ONE_TURN_LAYER),
            values={"workspace_id": workspace_id},
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the one right call."""
        return _build_expected_call(instance).to_expected_calls()

    def open(self, instance: Instance) -> Workspace:
        """Return the tool with its fixed answer."""
        return FixedAnswerTools({"classify_intent": _read_texts()["answer"]})

    def judge(self, instance: Instance, ended: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict on the first answer."""
        return single_call.judge(instance, ended, _build_expected_call(instance))


def _build_expected_call(instance: Instance) -> single_call.ExpectedSingleCall:
    return single_call.ExpectedSingleCall("classify_intent", "workspace_id", instance.values["workspace_id"])


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("intent")
    return texts
