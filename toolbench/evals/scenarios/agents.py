"""Scenarios of the four agents that turn a question into an SQL query, each alone or all as a chain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.agents import verdict as agent_judging
from toolbench.evals.agents.workspaces import AgentWorkspace, load_workspaces
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.scenarios.packs import fill_values
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.single_call import ONE_TURN_LAYER
from toolbench.evals.scenarios.tools import build_definition
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Verdict, Workspace

CHAIN_AGENT = "chain"
CHAIN_LAYER: JsonObject = {"max_tool_calls_per_turn": 1}


@dataclass(eq=False, slots=True)
class AgentScenario:
    """A scenario of one agent with its own tool in one turn, or of the chain of all four.

    Scenario in evals/types.py explains the other attributes.

    Attributes:
        agent: The name of the agent, or CHAIN_AGENT.
    """

    agent: str
    slug: str
    title: str
    intent: str
    group: str = "agents"
    control: bool = False
    public: bool = True
    methods: tuple[str, ...] = METHODS
    version: int = 1
    min_requests: int = 1

    @property
    def agents(self) -> tuple[str, ...]:
        """Return the names of the scenario's agents, in order."""
        return agent_judging.AGENT_ORDER if self.agent == CHAIN_AGENT else (self.agent,)

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed.

        An instance of the kind PUBLISHED_WORDING has the first wordings, and its tools are in the order of the agents.
        The question and its values are drawn for either kind.
        """
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        question = _read_pack()["questions"][draw.source.randrange(len(_read_pack()["questions"]))]
        words = {name: choices[draw.source.randrange(len(choices))] for name, choices in question["words"].items()}
        context = _build_prompt_context(question["workspace"])
        tools = [build_definition(_read_pack()["agents"][agent]) for agent in self.agents]
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=fill_values(draw.choice(_read_pack()["system"][self.agent]), context),
            user_text=fill_values(draw.choice(question["text"]), words),
            tools=tuple(draw.shuffle(tools)),
            layer=dict(CHAIN_LAYER if self.agent == CHAIN_AGENT else ONE_TURN_LAYER),
            values={**_build_right_values(question), "sql": fill_values(question["sql"], words), "words": words},
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return one expected call for each agent."""
        return agent_judging.build_expected_calls(instance, self.agents)

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace."""
        return AgentWorkspace()

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict of the agent or the chain."""
        judge: Callable[[Instance, LoopResult, tuple[str, ...]], Verdict]
        judge = agent_judging.judge_chain if self.agent == CHAIN_AGENT else agent_judging.judge_agent
        return judge(instance, loop_result, self.agents)


def load_scenarios() -> tuple[AgentScenario, ...]:
    """Return the scenarios of data/packs/agents.json, in the order of the file."""
    return tuple(AgentScenario(**row) for row in _read_pack()["scenarios"])


def _build_right_values(question: JsonObject) -> JsonObject:
    optional_columns = question.get("optional_columns", ())
    return {
        "workspace_id": question["workspace"],
        "tables": list(question["tables"]),
        "columns": [column for column in question["columns"] if column not in optional_columns],
    }


@cache
def _build_prompt_context(workspace_id: str) -> Mapping[str, str]:
    """Return the values of the prompts' placeholders.

    Args:
        workspace_id: The name of the workspace of the question.

    Returns:
        `workspaces`: a sentence that describes all workspaces; `tables`: one that lists the tables of this workspace.
    """
    tables = [
        f"{name}({', '.join(f'{column} {sql_type}' for column, sql_type in table.columns.items())})"
        for name, table in load_workspaces()[workspace_id].tables.items()
    ]
    workspaces = [f"{name}: {workspace.about}" for name, workspace in load_workspaces().items()]
    return {"workspaces": f"Workspaces: {'; '.join(workspaces)}.", "tables": f"Tables: {'; '.join(tables)}."}


def _read_pack() -> JsonObject:
    pack: JsonObject = read_table("packs/agents")
    return pack
