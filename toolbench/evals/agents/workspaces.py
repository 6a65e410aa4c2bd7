"""The SQL workspaces of the four agents, and the agents' tools, whose answers are the next agent's input."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.types import JsonObject
from toolbench.evals.agents.sql import SqlTable
from toolbench.evals.data_files import read_table
from toolbench.evals.workspace import build_refusal


@dataclass(frozen=True, slots=True)
class SqlWorkspace:
    """A set of tables.

    Attributes:
        about: The description in the prompts.
    """

    about: str
    tables: Mapping[str, SqlTable]


@cache
def load_workspaces() -> Mapping[str, SqlWorkspace]:
    """Return the workspaces by workspace_id."""
    rows = read_table("packs/agents")["workspaces"]
    return {name: SqlWorkspace(row["about"], _build_tables(row["tables"])) for name, row in rows.items()}


def list_columns(workspace_id: str, *tables: str) -> tuple[str, ...]:
    """Return the columns of a workspace, or only those of the named tables, as `table.column`."""
    all_tables = load_workspaces()[workspace_id].tables
    names = [name for name in all_tables if name in (tables or all_tables)]
    return tuple(f"{name}.{column}" for name in names for column in all_tables[name].columns)


class AgentWorkspace:
    """The `Workspace` of one execution: the agents' tools, whose answers depend on earlier calls.

    `classify_intent` answers with the tables of the selected workspace, `select_tables` with the columns of the
    selected tables. A wrong selection that the tool's schema permits is no error.
    """

    def __init__(self) -> None:
        self._calls: list[JsonObject] = []
        self._workspace_id = ""

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Return the answer of a tool, or a refusal for an unknown one.

        Raises:
            ToolArgumentError: There is no such workspace, or an argument is no array of strings.
        """
        self._calls.append({"name": name, "arguments": copy.deepcopy(arguments)})
        if name == "classify_intent":
            return self._select_workspace(arguments.get("workspace_id"))
        if name == "select_tables":
            return self._select_tables(_read_names(arguments, "relevant_tables"))
        if name == "prune_columns":
            return {"kept": _read_names(arguments, "relevant_columns")}
        if name == "generate_sql":
            return {"recorded": True}
        return build_refusal(name, "TOOL_NOT_IMPLEMENTED", f"{name} is not implemented")

    def snapshot(self) -> JsonObject:
        """Return {"called": calls}: a copy of all calls so far, in order."""
        return {"called": copy.deepcopy(self._calls)}

    def _select_workspace(self, workspace_id: object) -> JsonObject:
        if not isinstance(workspace_id, str) or workspace_id not in load_workspaces():
            raise ToolArgumentError(f"workspace_id must be one of: {', '.join(load_workspaces())}")
        self._workspace_id = workspace_id
        return {"workspace_id": workspace_id, "tables": list(load_workspaces()[workspace_id].tables)}

    def _select_tables(self, names: list[str]) -> JsonObject:
        """Return the columns of each named table, and unknown names; neither if no workspace was selected."""
        tables = load_workspaces()[self._workspace_id].tables if self._workspace_id else {}
        columns = {name: list(tables[name].columns) for name in names if name in tables}
        unknown = [name for name in names if name not in tables] if self._workspace_id else []
        return {"columns": columns, **({"unknown": unknown} if unknown else {})}


def _read_names(arguments: JsonObject, key: str) -> list[str]:
    """Return a copy of an argument that is an array of strings.

    Raises:
        ToolArgumentError: The argument is missing or has another type.
    """
    names = arguments.get(key)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ToolArgumentError(f"{key} must be an array of strings")
    return list(names)


def _build_tables(tables: JsonObject) -> Mapping[str, SqlTable]:
    return {
        name: SqlTable(table["columns"], tuple(tuple(row) for row in table["rows"])) for name, table in tables.items()
    }
