"""Tests of patch operations on a draft: their results, and that a failed patch changes nothing."""

from typing import Any

import pytest

from toolbench.evals.json_patch import PatchError, apply_patch


def draft(**values: Any) -> dict[str, Any]:
    return {"draft": values}


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        (draft(), {"op": "set", "path": "/draft/foo", "value": "bar"}, draft(foo="bar")),
        (draft(), {"op": "set", "path": "/draft/a/b/c", "value": 1}, draft(a={"b": {"c": 1}})),
        (draft(), {"op": "set", "path": "/draft/a~1b~0c", "value": 1}, {"draft": {"a/b~c": 1}}),
        (draft(list=[1, 2]), {"op": "set", "path": "/draft/list/1", "value": 9}, draft(list=[1, 9])),
        (draft(foo=1, bar=2), {"op": "delete", "path": "/draft/foo"}, draft(bar=2)),
        (draft(list=[1, 2]), {"op": "delete", "path": "/draft/list/0"}, draft(list=[2])),
        (draft(), {"op": "append", "path": "/draft/list", "value": 1}, draft(list=[1])),
        (draft(list=[1]), {"op": "append", "path": "/draft/list", "value": 2}, draft(list=[1, 2])),
        (draft(), {"op": "insert", "path": "/draft/list", "value": 1, "index": 3}, draft(list=[1])),
        (draft(list=[1, 3]), {"op": "insert", "path": "/draft/list", "value": 2, "index": 1}, draft(list=[1, 2, 3])),
    ],
)
def test_apply_patch_each_operation_changes_the_document(before: Any, operation: Any, after: Any) -> None:
    assert apply_patch(before, [operation], root="/draft/") == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/draft/foo", "value": 1},
        {"op": "set", "path": "/facts/foo", "value": 1},
        {"op": "set", "path": "/draft/", "value": 1},
        {"op": "set", "path": 7, "value": 1},
        {"op": "set", "path": "/draft/bad~2escape", "value": 1},
        {"op": "set", "path": "/draft/text/inside", "value": 1},
        {"op": "set", "path": "/draft/list/7", "value": 1},
        {"op": "set", "path": "/draft/list/-1", "value": 1},
        {"op": "set", "path": f"/draft/list/{'9' * 5_000}", "value": 1},
        {"op": "delete", "path": "/draft/missing"},
        {"op": "delete", "path": "/draft/missing/deeper"},
        {"op": "append", "path": "/draft/text", "value": 1},
        {"op": "insert", "path": "/draft/list", "value": 1},
        {"op": "insert", "path": "/draft/list", "value": 1, "index": 9},
        {"op": "insert", "path": "/draft/list", "value": 1, "index": True},
    ],
)
def test_apply_patch_invalid_operation_undoes_earlier_ones(operation: Any) -> None:
    document = draft(text="here", list=[1, 2])
    valid = {"op": "set", "path": "/draft/foo", "value": "bar"}
    with pytest.raises(PatchError):
        apply_patch(document, [valid, operation], root="/draft/")
    assert document == draft(text="here", list=[1, 2])


def test_apply_patch_copies_the_value() -> None:
    value = {"deep": [1]}
    changed = apply_patch(draft(), [{"op": "set", "path": "/draft/foo", "value": value}], root="/draft/")
    value["deep"].append(2)
    assert changed == draft(foo={"deep": [1]})
