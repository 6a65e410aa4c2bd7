from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS
from toolbench.engine.events import Outcome
from toolbench.engine.loop.dispatch import DispatchedCall, build_tool_result, dispatch, find_tool
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import ToolCall

SET = '{"ops":[{"op":"set"}]}'


def dispatch_call(name: str, arguments: object = "{}", **policy: Any) -> DispatchedCall:
    return dispatch(ToolCall("c1", name, arguments), TOOLS, Policy(**policy))


def get_error_code(dispatched: DispatchedCall) -> str:
    assert dispatched.refusal is not None
    assert dispatched.prepared_call is None
    return str(dispatched.refusal.errors[0]["code"])


def test_dispatch_matches_name_with_dots_and_blanks_to_its_tool() -> None:
    dispatched = dispatch_call(" state.patch ", SET)
    assert dispatched.prepared_call is not None
    assert (dispatched.prepared_call.id, dispatched.prepared_call.name) == ("c1", "state_patch")
    assert dispatched.prepared_call.arguments == {"ops": [{"op": "set"}]}


def test_dispatch_resolves_alias_before_dots() -> None:
    assert dispatch_call("read", tool_name_aliases={"read": "state.get"}).tool_name == "state_get"


def test_find_tool_prefers_exact_name_over_underscores() -> None:
    dotted, plain = ToolDefinition("a.b", ""), ToolDefinition("a_b", "")
    assert find_tool("a.b", ToolRegistry((plain, dotted)), {}) is dotted
    assert find_tool("a.b", ToolRegistry((plain,)), {}) is plain


@pytest.mark.parametrize("name", ["nope", "", "facts_commit", "State_Get", "state-get"])
def test_dispatch_refuses_unknown_blank_hidden_or_misspelled_tool(name: str) -> None:
    assert get_error_code(dispatch_call(name)) == "TOOL_NOT_ALLOWED"


def test_dispatch_refuses_denied_tool() -> None:
    dispatched = dispatch(ToolCall("c", "state_get", "{}"), TOOLS.select(denied_names=["state_get"]), Policy())
    assert get_error_code(dispatched) == "TOOL_NOT_ALLOWED"


def test_dispatch_checks_arguments_before_the_name() -> None:
    assert get_error_code(dispatch_call("nope", "{")) == "ARGUMENTS_JSON_PARSE_ERROR"
    assert get_error_code(dispatch_call("nope", "x" * 20, max_tool_args_bytes=10)) == "ARGUMENTS_TOO_LARGE"


def test_dispatch_too_large_arguments_report_size_and_limit() -> None:
    dispatched = dispatch_call("state_patch", SET, max_tool_args_bytes=10)
    assert dispatched.refusal is not None
    assert dispatched.refusal.data == {"max_bytes": 10}
    assert "22 bytes" in dispatched.refusal.errors[0]["message"]


def test_dispatch_measures_object_arguments_as_json() -> None:
    assert get_error_code(dispatch_call("state_get", {"a": "xxxxx"}, max_tool_args_bytes=12)) == "ARGUMENTS_TOO_LARGE"
    assert dispatch_call("state_get", {"a": "xxxxx"}, max_tool_args_bytes=13).prepared_call


def test_dispatch_schema_violation_is_argument_error_with_paths() -> None:
    dispatched = dispatch_call("state_patch", '{"ops":"set"}')
    assert get_error_code(dispatched) == "ARGUMENT_ERROR"
    assert [(e.path, e.kind) for e in dispatched.schema_errors] == [("$.ops", "type")]
    assert dispatched.refusal is not None
    assert "$.ops" in dispatched.refusal.errors[0]["message"]
    result = build_tool_result(dispatched, None, Policy())
    assert not result.was_executed
    assert result.schema_errors == dispatched.schema_errors
    assert result.arguments == {"ops": "set"}


def test_dispatch_without_argument_checks_accepts_schema_violation() -> None:
    assert dispatch_call("state_patch", '{"ops":"set"}', validate_arguments=False).prepared_call


def test_prepared_arguments_are_a_copy() -> None:
    raw = {"ops": [{"op": "set"}]}
    dispatched = dispatch_call("state_patch", raw)
    assert dispatched.prepared_call is not None
    dispatched.prepared_call.arguments["ops"].clear()
    assert raw == dispatched.read_arguments.arguments == {"ops": [{"op": "set"}]}


def test_build_tool_result_has_outcome_and_both_tool_names() -> None:
    result = build_tool_result(dispatch_call("state.get"), Outcome({"a": 1}, duration_ms=12.5), Policy())
    assert (result.was_executed, result.parse_status, result.duration_ms) == (True, "ok", 12.5)
    assert (result.call.name, result.envelope.tool_name) == ("state.get", "state_get")


def test_build_tool_result_of_prepared_call_needs_outcome() -> None:
    with pytest.raises(ValueError, match="c1"):
        build_tool_result(dispatch_call("state_get"), None, Policy())


def test_build_tool_result_of_refused_call_has_no_duration() -> None:
    result = build_tool_result(dispatch_call("nope"), None, Policy())
    assert (result.was_executed, result.duration_ms) == (False, 0)
