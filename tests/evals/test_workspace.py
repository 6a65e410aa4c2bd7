"""Tests of the workspace of the state tools: accepted calls, and the messages of refusals."""

from typing import Any

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.evals.workspace import StateWorkspace


@pytest.fixture
def workspace() -> StateWorkspace:
    return StateWorkspace("w-1", writable="foo", draft={"note": "a/b"}, answers={"clock_now": {"utc": "now"}})


def list_codes(envelope: Any) -> list[str]:
    return [error["code"] for error in envelope["errors"]]


def set_foo(value: str = "bar") -> dict[str, Any]:
    return {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": value}]}


@pytest.mark.parametrize(
    "given", [{}, {"workspace_id": ""}, {"workspace_id": " workspace_id "}, {"workspace_id": "w-1"}]
)
def test_state_get_workspace_id_may_be_omitted(workspace: StateWorkspace, given: dict[str, Any]) -> None:
    snapshot: Any = workspace.call("state_get", given, "c1")
    assert snapshot["versions"] == {"facts_etag": "facts:0", "draft_etag": "draft:0"}
    assert set(snapshot) == {"facts", "draft", "locks", "ui_state", "versions"}


@pytest.mark.parametrize("given", ["w-2", 7])
def test_state_get_of_another_workspace_is_not_found(workspace: StateWorkspace, given: object) -> None:
    assert list_codes(workspace.call("state_get", {"workspace_id": given}, "c1")) == ["WORKSPACE_NOT_FOUND"]


def test_state_get_select_accepts_pointers_as_models_write_them(workspace: StateWorkspace) -> None:
    pointers = ["/draft/note", "`#/draft/note`", "draft/note", '"/versions/draft_etag"', "/nowhere", "", "/bad~2"]
    found = workspace.call("state_get", {"select": pointers}, "c1")
    assert found == {"/draft/note": "a/b", "/versions/draft_etag": "draft:0", "/nowhere": None, "/bad~2": None}


def test_state_get_select_that_is_no_array_is_refused(workspace: StateWorkspace) -> None:
    with pytest.raises(ToolArgumentError):
        workspace.call("state_get", {"select": "/draft"}, "c1")


def test_state_patch_raises_the_version_and_changes_the_draft(workspace: StateWorkspace) -> None:
    assert workspace.call("state_patch", set_foo(), "c1") == {"draft_etag": "draft:1", "applied": 1}
    assert workspace.snapshot()["draft"] == {"note": "a/b", "foo": "bar"}


@pytest.mark.parametrize(
    "ops",
    [
        None,
        [],
        {"op": "set"},
        ["set"],
        [{"op": "delete", "path": "/draft/foo"}],
        [{"op": "set", "path": "/draft/note", "value": "x"}],
        [{"op": "set", "path": "/draft/foo", "value": "x"}, {"op": "set", "path": "/draft/other", "value": "x"}],
    ],
)
def test_state_patch_allows_only_set_of_the_writable_path(workspace: StateWorkspace, ops: object) -> None:
    with pytest.raises(ToolArgumentError):
        workspace.call("state_patch", {"request_id": "r1", "ops": ops}, "c1")
    assert workspace.snapshot()["versions"]["draft_etag"] == "draft:0"


def test_state_workspace_patch_without_operations_keeps_the_version(workspace: StateWorkspace) -> None:
    assert workspace.patch([]) == {"draft_etag": "draft:0", "applied": 0}


@pytest.mark.parametrize("name", ["facts_commit", "state_delete"])
def test_state_workspace_tool_without_code_is_not_implemented(workspace: StateWorkspace, name: str) -> None:
    assert list_codes(workspace.call(name, {}, "c1")) == ["TOOL_NOT_IMPLEMENTED"]


def test_state_workspace_other_tools_give_their_fixed_answer(workspace: StateWorkspace) -> None:
    assert workspace.call("clock_now", {}, "c1") == {"utc": "now"}


def test_state_workspace_snapshot_is_a_copy(workspace: StateWorkspace) -> None:
    workspace.snapshot()["draft"]["foo"] = "changed"
    assert "foo" not in workspace.snapshot()["draft"]
