import re
from typing import Any

import pytest

from tests.engine.scripted_model import GET_TOOL, TOOLS
from toolbench.engine.errors import PlanError
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.strict_json import write_json
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject


def prepare_setup(
    model: str = "m-1", *, tools: ToolRegistry = TOOLS, options: JsonObject | None = None, **policy: Any
) -> TurnSetup:
    resolved = resolve_policy([("test", policy)]).policy
    return prepare_turns(model, resolved, system="", tools=tools, options=options or {}, seed=None)


def build_nested_schema(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_prepare_turns_invalid_plan_raises_error_with_reason() -> None:
    repeated = ToolRegistry((GET_TOOL, GET_TOOL))
    broken = ToolRegistry((ToolDefinition("t", "", {"type": "nope"}),))
    not_finite: JsonObject = {"temperature": float("nan")}
    with pytest.raises(PlanError, match="no model"):
        prepare_setup(model=" ")
    with pytest.raises(PlanError, match="no name"):
        prepare_setup(tools=ToolRegistry((StoredToolDefinition(" "),)))
    with pytest.raises(PlanError, match="more than once"):
        prepare_setup(tools=repeated)
    with pytest.raises(PlanError, match="tool t "):
        prepare_setup(tools=broken)
    with pytest.raises(PlanError, match="deeper than 128"):
        prepare_setup(
            tools=ToolRegistry((ToolDefinition("t", "", build_nested_schema(5000)),)), validate_arguments=False
        )
    with pytest.raises(PlanError, match="options"):
        prepare_setup(options=not_finite)


PATTERNED = ToolRegistry(
    (ToolDefinition("t", "", {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=x)a+$"}}}),)
)
BROKEN = ToolRegistry((ToolDefinition("t", "", {"type": "nope"}),))


def test_prepare_turns_adds_seed_only_if_given() -> None:
    seeded = prepare_turns("m-1", Policy(), system="", tools=TOOLS, options={"top_k": 4}, seed=0)
    assert seeded.options == {"seed": 0, "top_k": 4}
    assert prepare_setup(options={"top_k": 4}).options == {"top_k": 4}


def test_prepare_turns_ignores_stream_option() -> None:
    assert prepare_setup(options={"stream": True}).is_streamed is False


def test_constraint_needs_valid_schemas_even_without_argument_checks() -> None:
    with pytest.raises(PlanError, match="tool t "):
        prepare_setup(tools=BROKEN, method="constrained", validate_arguments=False)
    assert prepare_setup(tools=BROKEN, validate_arguments=False).tools_json


def test_tool_changes_report_keywords_that_constraint_drops() -> None:
    changes = prepare_setup(tools=PATTERNED, method="constrained").tool_changes
    assert [change.name for change in changes] == ["constraint_response_format"]
    assert prepare_setup(tools=PATTERNED).tool_changes == ()
    assert prepare_setup(tools=ToolRegistry(), method="constrained").tool_changes == ()


@pytest.mark.parametrize(
    ("parallel", "calls_per_turn", "max_items"),
    [(True, None, 8), (True, 3, 3), (False, None, None), (False, 3, None), (None, None, None), (None, 3, None)],
)
def test_constraint_allows_several_calls_only_with_parallel_tool_calls(
    parallel: bool | None, calls_per_turn: int | None, max_items: int | None
) -> None:
    options = {} if parallel is None else {"parallel_tool_calls": parallel}
    policy: dict[str, Any] = {} if calls_per_turn is None else {"max_tool_calls_per_turn": calls_per_turn}
    setup = prepare_setup(options=options, tools=ToolRegistry((GET_TOOL,)), method="constrained", **policy)
    body = setup.call_method.prepare_body({"messages": []}, list(setup.tools_json), "auto")
    assert re.findall(r'"maxItems":(\d+)', write_json(body)) == ([] if max_items is None else [str(max_items)])


def test_transform_context_has_tools_only_if_they_are_sent() -> None:
    setup = prepare_setup()
    assert setup.build_transform_context(has_tools=True).tools == setup.tools.definitions
    assert setup.build_transform_context(has_tools=False).tools == ()


def test_get_unchanged_json_returns_tools_only_if_unchanged() -> None:
    setup = prepare_setup()
    sent = list(setup.tools_json)
    assert setup.get_unchanged_json({"tools": sent}) == {"tools": write_json(sent)}
    assert setup.get_unchanged_json({"tools": [*sent[:1], dict(sent[1])]}) == {}
    assert setup.get_unchanged_json({"tools": sent[:1]}) == {}
    assert setup.get_unchanged_json({"tools": [*sent, sent[0]]}) == {}
    assert setup.get_unchanged_json({"tools": "none"}) == {}
    assert setup.get_unchanged_json({}) == {}
