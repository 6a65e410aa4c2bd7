"""Lists of objects in the nested tags of MiniMax M3."""

from typing import Any

import pytest

from toolbench.engine.formats import parse
from toolbench.engine.formats.families.minimax_m3 import MINIMAX_M3, PREFIX
from toolbench.engine.formats.types import TextCall

INTEGER = {"type": "integer"}


def _build_tools(item_schema: dict[str, Any]) -> list[dict[str, Any]]:
    rows = {"type": "array", "items": {"type": "object", **item_schema}}
    return [{"name": "f", "parameters": {"type": "object", "properties": {"rows": rows}}}]


@pytest.mark.parametrize("rows", [[{"a": 1}, {"b": 2}], [{"a": 1}], [{"a": 1, "b": 2}]])
@pytest.mark.parametrize(
    "item_schema", [{"additionalProperties": INTEGER}, {"properties": {"a": INTEGER}, "additionalProperties": INTEGER}]
)
def test_list_of_objects_with_further_keys_keeps_all_items(
    rows: list[dict[str, int]], item_schema: dict[str, Any]
) -> None:
    text = MINIMAX_M3.layout.write_call(TextCall("f", {"rows": rows}), 0)
    parsed = parse(text, format="minimax_m3", tools=_build_tools(item_schema))
    assert (parsed.calls[0].arguments, parsed.findings) == ({"rows": rows}, ())


@pytest.mark.parametrize(
    ("item_schema", "key"), [({"additionalProperties": INTEGER}, "a"), ({"properties": {"item": INTEGER}}, "item")]
)
def test_object_without_item_tag_is_the_only_item_of_a_list(item_schema: dict[str, Any], key: str) -> None:
    value = f"{PREFIX}<rows>{PREFIX}<{key}>1{PREFIX}</{key}>{PREFIX}</rows>"
    text = f'{PREFIX}<tool_call>{PREFIX}<invoke name="f">{value}{PREFIX}</invoke>{PREFIX}</tool_call>'
    parsed = parse(text, format="minimax_m3", tools=_build_tools(item_schema))
    assert (parsed.calls[0].arguments, parsed.findings) == ({"rows": [{key: 1}]}, ())
