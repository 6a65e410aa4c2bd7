"""Four agents on the way from a question to a query: intent, table, column, SQL; each alone, or all in a chain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.agents import verdict as agent_judging
from toolbench.evals.agents.workspaces import AgentWorkspace, world
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.scenarios.packs import filled
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import definition
from toolbench.evals.types import DRAWN, PARITY, Instance, Verdict, Workspace

CHAIN = "chain"
LAYERS: Mapping[str, JsonObject] = {CHAIN: {"max_tool_calls_per_turn": 1}}
ONE_TURN: JsonObject = {"max_turns": 1}


@dataclass(eq=False, slots=True)
class AgentScenario:
    """One agent by its own tool in one turn, or the chain of all four. The parity instance has the first wording."""

    agent: str
    slug: str
    title: str
    intent: str
    group: str = "agents"
    control: bool = False
    public: bool = True
    methods: tuple[str, ...] = METHODS
    version: int = 1
    straight_requests: int = 1

    @property
    def agents(self) -> tuple[str, ...]:
        return agent_judging.ORDER if self.agent == CHAIN else (self.agent,)

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
        question = _texts()["questions"][draw.source.randrange(len(_texts()["questions"]))]
        words = {name: choices[draw.source.randrange(len(choices))] for name, choices in question["words"].items()}
        context = _context(question["workspace"])
        tools = [definition(_texts()["agents"][agent]) for agent in self.agents]
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=filled(draw.choice(_texts()["system"][self.agent]), context),
            user_text=filled(draw.choice(question["text"]), words),
            tools=tuple(draw.shuffled(tools)),
            layer=dict(LAYERS.get(self.agent, ONE_TURN)),
            values={**_wanted(question), "sql": filled(question["sql"], words), "words": words},
        )

    def due(self, instance: Instance) -> Due:
        return agent_judging.due(instance, self.agents)

    def open(self, instance: Instance) -> Workspace:
        return AgentWorkspace()

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        judge: Callable[[Instance, Ended, tuple[str, ...]], Verdict]
        judge = agent_judging.judge_chain if self.agent == CHAIN else agent_judging.judge_agent
        return judge(instance, ended, self.agents)


def load() -> tuple[AgentScenario, ...]:
    return tuple(AgentScenario(**row) for row in _texts()["scenarios"])


def _wanted(question: JsonObject) -> JsonObject:
    loose = question.get("loose_columns", ())
    return {
        "workspace_id": question["workspace"],
        "tables": list(question["tables"]),
        "columns": [one for one in question["columns"] if one not in loose],
    }


@cache
def _context(workspace_id: str) -> Mapping[str, str]:
    """What the prompts say of the workspaces, and of one workspace's tables."""
    tables = [
        f"{name}({', '.join(f'{column} {kind}' for column, kind in table.columns.items())})"
        for name, table in world()[workspace_id].tables.items()
    ]
    spaces = [f"{name}: {one.about}" for name, one in world().items()]
    return {"workspaces": "Workspaces: " + "; ".join(spaces) + ".", "tables": "Tables: " + "; ".join(tables) + "."}


def _texts() -> JsonObject:
    texts: JsonObject = read_table("packs/agents")
    return texts
