from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS
from toolbench.engine.events import Outcome
from toolbench.engine.loop.dispatch import DispatchedCall, build_tool_result, dispatch, find_tool
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import ToolCall

SET = '{"ops":[{"op":"set"}]}'


def dispatched(name: str, arguments: object = "{}", **policy: Any) -> DispatchedCall:
    return dispatch(ToolCall("c1", name, arguments), TOOLS, Policy(**policy))


def code(one: DispatchedCall) -> str:
    assert one.refusal is not None
    assert one.prepared_call is None
    return str(one.refusal.errors[0]["code"])


def test_a_good_call_may_run_under_the_tools_own_name() -> None:
    one = dispatched(" state.patch ", SET)
    assert one.prepared_call is not None
    assert (one.prepared_call.id, one.prepared_call.name) == ("c1", "state_patch")
    assert one.prepared_call.arguments == {"ops": [{"op": "set"}]}


def test_aliases_come_before_dots() -> None:
    assert dispatched("read", tool_name_aliases={"read": "state.get"}).tool_name == "state_get"


def test_a_tool_with_a_dotted_name_is_found_under_it() -> None:
    dotted, plain = ToolDefinition("a.b", ""), ToolDefinition("a_b", "")
    assert find_tool("a.b", ToolRegistry((plain, dotted)), {}) is dotted
    assert find_tool("a.b", ToolRegistry((plain,)), {}) is plain


@pytest.mark.parametrize("name", ["nope", "", "facts_commit", "State_Get", "state-get"])
def test_an_unknown_blank_hidden_or_misspelled_tool_is_not_allowed(name: str) -> None:
    assert code(dispatched(name)) == "TOOL_NOT_ALLOWED"


def test_a_masked_tool_is_not_allowed() -> None:
    one = dispatch(ToolCall("c", "state_get", "{}"), TOOLS.select(denied_names=["state_get"]), Policy())
    assert code(one) == "TOOL_NOT_ALLOWED"


def test_arguments_are_looked_at_before_the_name() -> None:
    assert code(dispatched("nope", "{")) == "ARGUMENTS_JSON_PARSE_ERROR"
    assert code(dispatched("nope", "x" * 20, max_tool_args_bytes=10)) == "ARGUMENTS_TOO_LARGE"


def test_arguments_too_large_say_the_limit() -> None:
    one = dispatched("state_patch", SET, max_tool_args_bytes=10)
    assert one.refusal is not None
    assert one.refusal.data == {"max_bytes": 10}
    assert "22 bytes" in one.refusal.errors[0]["message"]


def test_an_object_is_too_large_by_the_same_rule() -> None:
    assert code(dispatched("state_get", {"a": "xxxxx"}, max_tool_args_bytes=12)) == "ARGUMENTS_TOO_LARGE"
    assert dispatched("state_get", {"a": "xxxxx"}, max_tool_args_bytes=13).prepared_call


def test_a_broken_schema_is_an_argument_error_with_paths_and_never_runs() -> None:
    one = dispatched("state_patch", '{"ops":"set"}')
    assert code(one) == "ARGUMENT_ERROR"
    assert [(e.path, e.kind) for e in one.schema_errors] == [("$.ops", "type")]
    assert one.refusal is not None
    assert "$.ops" in one.refusal.errors[0]["message"]
    result = build_tool_result(one, None, Policy())
    assert not result.was_executed
    assert result.schema_errors == one.schema_errors
    assert result.arguments == {"ops": "set"}


def test_checking_the_schema_can_be_switched_off() -> None:
    assert dispatched("state_patch", '{"ops":"set"}', validate_arguments=False).prepared_call


def test_a_tool_that_changes_its_arguments_changes_only_its_own_copy() -> None:
    raw = {"ops": [{"op": "set"}]}
    one = dispatched("state_patch", raw)
    assert one.prepared_call is not None
    one.prepared_call.arguments["ops"].clear()
    assert raw == one.read_arguments.arguments == {"ops": [{"op": "set"}]}


def test_a_result_tells_what_became_of_its_call() -> None:
    result = build_tool_result(dispatched("state.get"), Outcome({"a": 1}, duration_ms=12.5), Policy())
    assert (result.was_executed, result.parse_status, result.duration_ms) == (True, "ok", 12.5)
    assert (result.call.name, result.envelope.tool_name) == ("state.get", "state_get")


def test_a_call_that_ran_needs_its_outcome() -> None:
    with pytest.raises(ValueError, match="c1"):
        build_tool_result(dispatched("state_get"), None, Policy())


def test_a_refused_call_took_no_time() -> None:
    result = build_tool_result(dispatched("nope"), None, Policy())
    assert (result.was_executed, result.duration_ms) == (False, 0)
