"""Trial of a scenario for tests of judging: its instance, its workspace, and calls that run in the workspace."""

from typing import Any

from tests.evals.records import run_tool
from toolbench.engine.events import LoopResult, ToolResult
from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING, Instance, Scenario, Verdict, Workspace


class ManualTrial:
    def __init__(self, slug: str, kind: str = PUBLISHED_WORDING, seed: int = 7) -> None:
        self.scenario: Scenario = scenarios.lookup_scenario(slug)
        self.instance: Instance = self.scenario.draw_instance(seed, kind=kind)
        self.workspace: Workspace = self.scenario.open(self.instance)
        self.values = self.instance.values

    def call(self, name: str, **arguments: Any) -> ToolResult:
        return run_tool(self.workspace, name, arguments)

    def get(self, **arguments: Any) -> ToolResult:
        return self.call("state_get", **{"workspace_id": self.values["workspace_id"], **arguments})

    def patch(self, *, key: str = "", value: str = "") -> ToolResult:
        path = f"/draft/{key or self.values['key']}"
        operation = {"op": "set", "path": path, "value": value or self.values["value"]}
        given = {"workspace_id": self.values["workspace_id"], "request_id": "r1", "ops": [operation]}
        return self.call("state_patch", **given)

    def judge(self, record: LoopResult) -> Verdict:
        return self.scenario.judge(self.instance, record, self.workspace)
