from typing import Any

import pytest

from toolbench.engine.transforms import apply_result

COMPACT = "tool_result_compact_envelope"


def envelope(**more: Any) -> dict[str, Any]:
    return {"ok": True, "tool_name": "f", "data": {}, "warnings": [], "errors": [], **more}


def test_empty_parts_are_left_out_of_the_envelope() -> None:
    given = envelope()
    compact, changes = apply_result(given, [COMPACT], tool_name="f", call_id="c1")
    assert compact == {"ok": True, "tool_name": "f"}
    assert [c.path for c in changes] == ["$['c1'].data", "$['c1'].warnings", "$['c1'].errors"]
    assert given == envelope()


@pytest.mark.parametrize("part", [{"data": {"a": None}}, {"warnings": ["w"]}, {"errors": [{"code": "X"}]}])
def test_parts_that_say_something_stay(part: dict[str, Any]) -> None:
    compact, _ = apply_result(envelope(**part), [COMPACT])
    assert compact == {"ok": True, "tool_name": "f", **part}


@pytest.mark.parametrize("part", [{"data": None}, {"data": []}, {"errors": {}}])
def test_empty_parts_of_another_type_stay(part: dict[str, Any]) -> None:
    compact, _ = apply_result(envelope(**part), [COMPACT])
    assert set(part) <= set(compact)
