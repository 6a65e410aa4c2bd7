"""Checks of a call, which give a call that may run or a refusal for the model.

A refused call never runs. The checks, in order: arguments that are too large (ARGUMENTS_TOO_LARGE) or not a JSON object
(ARGUMENTS_JSON_PARSE_ERROR); a tool that is unknown, hidden or masked (TOOL_NOT_ALLOWED); arguments that violate the
tool's JSON Schema (ARGUMENT_ERROR). ARGUMENT_ERROR is also the code that a tool gives for arguments it refuses, as the
case study's scenarios expect; its message lists the JSON paths and errors, and ToolResult.schema_errors has one item
for each error.
"""

from toolbench.engine.arguments import TOO_LARGE, read_arguments
from toolbench.engine.events import Outcome, PreparedCall, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.result_envelope import build_envelope, build_refusal, render_envelope
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import copy_json
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import Envelope, ReadArguments, SchemaError, ToolCall


@light(frozen=True, slots=True)
class DispatchedCall:
    """A checked call, with either `prepared` or `refused` set.

    Attributes:
        tool_name: name of the tool; if no tool was found, the name that the model wrote.
    """

    call: ToolCall
    read: ReadArguments
    tool_name: str
    prepared: PreparedCall | None = None
    refused: Envelope | None = None
    schema_errors: tuple[SchemaError, ...] = ()


def dispatch(call: ToolCall, tools: ToolRegistry, policy: Policy) -> DispatchedCall:
    """Return the checked call: prepared if it may run, otherwise refused. No tool runs here."""
    standard_only = policy.wire_standard_only
    read = call.read or read_arguments(call.arguments, policy.max_tool_args_bytes, standard_only=standard_only)
    tool = find_tool(call.name, tools, policy.tool_name_aliases, is_exact=standard_only)
    name = tool.name if tool else call.name.strip()
    if read.arguments is None:
        return DispatchedCall(call, read, name, refused=_refuse_unreadable(name, read, policy.max_tool_args_bytes))
    if tool is None:
        refusal = build_refusal(name, "TOOL_NOT_ALLOWED", f"There is no tool named {name!r} here.")
        return DispatchedCall(call, read, name, refused=refusal)
    schema_errors = list_schema_errors(tool, read.arguments) if policy.validate_arguments else ()
    if schema_errors:
        refusal = build_refusal(name, "ARGUMENT_ERROR", _describe_schema_errors(schema_errors))
        return DispatchedCall(call, read, name, refused=refusal, schema_errors=schema_errors)
    arguments = copy_json(read.arguments)
    return DispatchedCall(
        call, read, name, prepared=PreparedCall(call.id, name, arguments, tool.alone, tool.timeout_seconds)
    )


def find_tool(
    name: str, tools: ToolRegistry, aliases: dict[str, str], *, is_exact: bool = False
) -> ToolDefinition | None:
    """Return the tool for the name in a call; None if there is none.

    The name is trimmed and looked up in the aliases. Unless `is_exact` is set, a name with `.` that no tool has is also
    looked up with `_` instead.
    """
    searched_name = name.strip()
    searched_name = aliases.get(searched_name, searched_name)
    may_replace_dots = "." in searched_name and not is_exact
    return tools.find(searched_name) or (tools.find(searched_name.replace(".", "_")) if may_replace_dots else None)


def build_tool_result(dispatched: DispatchedCall, outcome: Outcome | None, policy: Policy) -> ToolResult:
    """Return the result of a call: its refusal, or the tool's output.

    Args:
        dispatched: the checked call.
        outcome: what the tool returned; None for a refused call.
        policy: the settings of the run.

    Raises:
        ValueError: the call ran and has no outcome.
    """
    envelope = dispatched.refused
    if envelope is None:
        if outcome is None:
            raise ValueError(f"no outcome for the call {dispatched.call.id}")
        envelope = build_envelope(outcome, dispatched.tool_name)
    rendered = render_envelope(
        envelope,
        policy.tool_result_transforms,
        max_bytes=policy.max_tool_output_bytes,
        call_id=dispatched.call.id,
    )
    return ToolResult(
        call=dispatched.call,
        arguments=dispatched.read.arguments,
        parse_status=dispatched.read.status,
        envelope=rendered.envelope,
        content=rendered.content,
        executed=dispatched.refused is None,
        schema_errors=dispatched.schema_errors,
        output_replaced=rendered.replaced,
        changes=rendered.changes,
        duration_ms=outcome.duration_ms if outcome else 0.0,
    )


def _refuse_unreadable(name: str, read: ReadArguments, max_bytes: int) -> Envelope:
    if read.status == TOO_LARGE:
        message = f"Not executed: {read.problem}. Call the tool again with shorter arguments."
        return build_refusal(name, "ARGUMENTS_TOO_LARGE", message, {"max_bytes": max_bytes})
    message = f"Not executed: the arguments are not a JSON object ({read.problem}). Send one JSON object only."
    return build_refusal(name, "ARGUMENTS_JSON_PARSE_ERROR", message)


def _describe_schema_errors(schema_errors: tuple[SchemaError, ...]) -> str:
    return "Not executed: " + "; ".join(f"{error.path}: {error.message}" for error in schema_errors)
