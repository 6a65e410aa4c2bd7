"""The scenario of one call of classify_intent, a choice among three values."""

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.single_call import ONE_TURN_LAYER, ExpectedSingleCall, SingleCallScenario
from toolbench.evals.scenarios.tools import build_definition
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Workspace


class IntentScenario(SingleCallScenario):
    """The scenario in which the model assigns a question to one of three workspaces.

    The seed selects the workspace, so that three consecutive seeds have each of them once. With PUBLISHED_WORDING it
    also selects the question, and the wording is the first one; a drawn instance has a random question and wording. A
    valid call with a random workspace is right in one trial of three.
    """

    slug = "classify_intent"
    version = 1
    title = "intent: a choice of three"
    group = "intent"
    intent = "Sort a question into one of three workspaces: a valid call is easy to force, a right one is not."

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        texts = _read_texts()
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        workspaces: dict[str, list[str]] = texts["workspaces"]
        workspace_id = list(workspaces)[seed % len(workspaces)]
        questions = workspaces[workspace_id]
        question_index = seed // len(workspaces) % len(questions)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(texts["system"]),
            user_text=questions[question_index] if kind == PUBLISHED_WORDING else draw.choice(questions),
            tools=(build_definition(texts["tool"]),),
            layer=dict(ONE_TURN_LAYER),
            values={"workspace_id": workspace_id},
        )

    def build_expected_call(self, instance: Instance) -> ExpectedSingleCall:
        """Return the expected call."""
        return ExpectedSingleCall("classify_intent", "workspace_id", instance.values["workspace_id"])

    def open(self, instance: Instance) -> Workspace:
        """Return the tool with its fixed answer."""
        return FaultyTools({"classify_intent": _read_texts()["answer"]})


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("intent")
    return texts
