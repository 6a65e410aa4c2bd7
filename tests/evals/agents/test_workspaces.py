"""The agents' tools, which also get arguments that the policy did not validate."""

from typing import Any

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.evals.agents.workspaces import AgentWorkspace, load_workspaces


def test_agent_workspace_answers_with_tables_and_columns() -> None:
    workspace = AgentWorkspace()
    name, sql_workspace = next(iter(load_workspaces().items()))
    table = next(iter(sql_workspace.tables))
    tables = workspace.call("classify_intent", {"workspace_id": name}, "1")
    assert tables == {"workspace_id": name, "tables": list(sql_workspace.tables)}
    columns = workspace.call("select_tables", {"relevant_tables": [table, "none"]}, "2")
    assert columns == {"columns": {table: list(sql_workspace.tables[table].columns)}, "unknown": ["none"]}
    assert workspace.call("prune_columns", {"relevant_columns": ["a.b"]}, "3") == {"kept": ["a.b"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("classify_intent", {"workspace_id": "none"}, "workspace_id must be one of: "),
        ("classify_intent", {"workspace_id": ["none"]}, "workspace_id must be one of: "),
        ("classify_intent", {}, "workspace_id must be one of: "),
        ("select_tables", {}, "relevant_tables must be an array of strings"),
        ("select_tables", {"relevant_tables": [{"name": "a"}]}, "relevant_tables must be an array of strings"),
        ("prune_columns", {}, "relevant_columns must be an array of strings"),
    ],
)
def test_agent_workspace_refuses_arguments_that_do_not_fit(tool: str, arguments: dict[str, Any], message: str) -> None:
    workspace = AgentWorkspace()
    with pytest.raises(ToolArgumentError, match=message):
        workspace.call(tool, arguments, "1")
    assert workspace.snapshot() == {"called": [{"name": tool, "arguments": arguments}]}
