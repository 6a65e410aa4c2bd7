"""The scenario that needs one call of classify_intent, whose argument is one of three workspaces."""

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.single_call import ONE_TURN_LAYER, ExpectedSingleCall, SingleCallScenario
from toolbench.evals.scenarios.tools import build_definition
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Workspace


class IntentScenario(SingleCallScenario):
    """The scenario in which the model assigns a question to one of three workspaces.

    The seed selects the workspace, so that three consecutive seeds cover all three. With PUBLISHED_WORDING the seed
    also selects the question, and the system text is the first one. A drawn instance has a random question and a random
    system text. A valid call with a random workspace is right in one of three trials.
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
        """Return the call that names the workspace of the instance."""
        return ExpectedSingleCall("classify_intent", "workspace_id", instance.values["workspace_id"])

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace with classify_intent and its fixed answer."""
        return FaultyTools({"classify_intent": _read_texts()["answer"]})


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("intent")
    return texts
