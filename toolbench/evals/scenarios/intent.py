"""One call of classify_intent: a choice of three, in which a valid call is right one time in three by chance."""

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.scenarios import single_call
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import definition
from toolbench.evals.types import DRAWN, PARITY, Instance, Verdict, Workspace
from toolbench.evals.workspace import FixedAnswers


class ClassifyIntent:
    """The three workspaces take turns by `seed`, so that any three seeds in a row are balanced; a drawn instance draws
    question and wording as well."""

    slug = "classify_intent"
    version = 1
    title = "intent: a choice of three"
    group = "intent"
    intent = "Sort a question into one of three workspaces: a valid call is easy to force, a right one is not."
    control = False
    public = True
    methods: tuple[str, ...] = METHODS
    straight_requests = 1

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        texts = _texts()
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
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
            user_text=questions[place] if kind == PARITY else draw.choice(questions),
            tools=(definition(texts["tool"]),),
            layer=dict(single_call.ONE_TURN),
            values={"workspace_id": workspace_id},
        )

    def due(self, instance: Instance) -> Due:
        return _wanted(instance).due

    def open(self, instance: Instance) -> Workspace:
        return FixedAnswers({"classify_intent": _texts()["answer"]})

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        return single_call.judge(instance, ended, _wanted(instance))


def _wanted(instance: Instance) -> single_call.Wanted:
    return single_call.Wanted("classify_intent", "workspace_id", instance.values["workspace_id"])


def _texts() -> JsonObject:
    texts: JsonObject = read_table("intent")
    return texts
