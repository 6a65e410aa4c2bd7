import json
from typing import Any

import pytest

from toolbench.engine.events import Outcome
from toolbench.engine.loop.result_envelope import (
    build_envelope,
    build_envelope_json,
    build_error_envelope,
    render_envelope,
)

COMPACT = "tool_result_compact_envelope"


def build_json(value: Any) -> dict[str, Any]:
    return build_envelope_json(build_envelope(Outcome(value), "t"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, {"ok": True, "data": {"value": 7}}),
        (None, {"ok": True, "data": {"value": None}}),
        ([1], {"ok": True, "data": {"value": [1]}}),
        ({"a": 1}, {"ok": True, "data": {"a": 1}}),
        ({"ok": True}, {"ok": True, "data": {}}),
        ({"ok": 1, "data": {"a": 1}}, {"ok": False, "data": {"a": 1}}),
        ({"ok": True, "tool_name": "other"}, {"ok": True, "tool_name": "t"}),
        ({"ok": True, "data": 7}, {"ok": True, "data": {"value": 7}}),
        ({"ok": True, "data": None, "warnings": "w"}, {"ok": True, "data": {}, "warnings": []}),
        ({"ok": True, "warnings": ["w", {"a": 1}]}, {"ok": True, "warnings": ["w", '{"a":1}']}),
        (
            {"ok": False, "errors": [{"code": 5, "message": None, "more": 1}, "text"]},
            {"ok": False, "errors": [{"code": "5", "message": ""}]},
        ),
    ],
)
def test_build_envelope_normalises_any_value(value: Any, expected: dict[str, Any]) -> None:
    full = {"ok": True, "tool_name": "t", "data": {}, "warnings": [], "errors": [], **expected}
    assert build_json(value) == full
    assert list(build_json(value)) == ["ok", "tool_name", "data", "warnings", "errors"]


def test_build_envelope_of_error_outcome_has_its_code_and_message() -> None:
    envelope = build_envelope(Outcome(error_code="ARGUMENT_ERROR", error_message="ops must be an array"), "t")
    assert not envelope.ok
    assert envelope.errors == ({"code": "ARGUMENT_ERROR", "message": "ops must be an array"},)


def _build_cyclic_list() -> list[Any]:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return cyclic


def _build_deep_list() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, float("nan"), {(1, 2): 3}, _build_cyclic_list(), _build_deep_list()],
    ids=lambda v: type(v).__name__,
)
def test_build_envelope_of_unwritable_value_is_serialization_error(value: object) -> None:
    envelope = build_envelope(Outcome(value), "t")
    assert not envelope.ok
    assert envelope.errors[0]["code"] == "TOOL_OUTPUT_SERIALIZATION_ERROR"
    assert set(envelope.data) == {"error_class", "message"}


def test_build_envelope_copies_the_value() -> None:
    value = {"facts": [1]}
    envelope = build_envelope(Outcome(value), "t")
    value["facts"].append(2)
    assert envelope.data == {"facts": [1]}


def test_render_envelope_limits_exact_utf8_bytes() -> None:
    envelope = build_envelope(Outcome({"text": "é€😀"}), "t")
    size = len(render_envelope(envelope, (), max_bytes=10_000, call_id="c").content.encode())
    assert not render_envelope(envelope, (), max_bytes=size, call_id="c").is_replaced
    rendered = render_envelope(envelope, (), max_bytes=size - 1, call_id="c")
    assert rendered.is_replaced
    assert rendered.envelope.data == {"bytes": size, "max_bytes": size - 1}
    assert rendered.envelope.errors[0]["code"] == "TOOL_OUTPUT_TOO_LARGE"
    assert json.loads(rendered.content)["ok"] is False


def test_render_envelope_measures_after_transforms() -> None:
    envelope = build_envelope(Outcome({}), "t")
    full = len(render_envelope(envelope, (), max_bytes=10_000, call_id="c").content)
    assert not render_envelope(envelope, (COMPACT,), max_bytes=full - 1, call_id="c").is_replaced


def test_render_envelope_transforms_replacement_without_limit() -> None:
    envelope = build_envelope(Outcome({"text": "x" * 100}), "t")
    rendered = render_envelope(envelope, (COMPACT,), max_bytes=10, call_id="c")
    assert "warnings" not in json.loads(rendered.content)
    assert len(rendered.content) > 10
    assert [change.name for change in rendered.changes] == [COMPACT]


def test_render_envelope_keeps_lone_surrogate() -> None:
    rendered = render_envelope(build_envelope(Outcome("\ud800"), "t"), (), max_bytes=1000, call_id="c")
    assert json.loads(rendered.content)["data"] == {"value": "\ud800"}


def test_build_error_envelope_has_all_five_keys() -> None:
    assert build_envelope_json(build_error_envelope("t", "TOOL_NOT_ALLOWED", "No.")) == {
        "ok": False,
        "tool_name": "t",
        "data": {},
        "warnings": [],
        "errors": [{"code": "TOOL_NOT_ALLOWED", "message": "No."}],
    }


def test_serialization_error_message_has_200_characters_at_most() -> None:
    envelope = build_envelope(Outcome(type("L" * 300, (), {})()), "t")
    assert len(envelope.data["message"]) == 200
