from typing import Any

import pytest

from toolbench.engine.transforms import apply_result

COMPACT = "tool_result_compact_envelope"


def build_envelope(**more: Any) -> dict[str, Any]:
    return {"ok": True, "tool_name": "f", "data": {}, "warnings": [], "errors": [], **more}


def test_compact_envelope_drops_empty_parts() -> None:
    original = build_envelope()
    compact, changes = apply_result(original, [COMPACT], tool_name="f", call_id="c1")
    assert compact == {"ok": True, "tool_name": "f"}
    assert [c.path for c in changes] == ["$['c1'].data", "$['c1'].warnings", "$['c1'].errors"]
    assert original == build_envelope()


@pytest.mark.parametrize("part", [{"data": {"a": None}}, {"warnings": ["w"]}, {"errors": [{"code": "X"}]}])
def test_compact_envelope_keeps_parts_with_content(part: dict[str, Any]) -> None:
    compact, _ = apply_result(build_envelope(**part), [COMPACT])
    assert compact == {"ok": True, "tool_name": "f", **part}


@pytest.mark.parametrize("part", [{"data": None}, {"data": []}, {"errors": {}}])
def test_compact_envelope_keeps_empty_parts_of_other_types(part: dict[str, Any]) -> None:
    compact, _ = apply_result(build_envelope(**part), [COMPACT])
    assert set(part) <= set(compact)
