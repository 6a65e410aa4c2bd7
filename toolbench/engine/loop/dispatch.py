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
    """A checked call, with either `prepared_call` or `refusal` set.

    Attributes:
        tool_name: name of the tool; if no tool was found, the name that the model wrote.
    """

    call: ToolCall
    read_arguments: ReadArguments
    tool_name: str
    prepared_call: PreparedCall | None = None
    refusal: Envelope | None = None
    schema_errors: tuple[SchemaError, ...] = ()


def dispatch(call: ToolCall, tools: ToolRegistry, policy: Policy) -> DispatchedCall:
    """Return the checked call: prepared if it may run, otherwise refused. No tool runs here."""
    is_standard_only = policy.wire_standard_only
    arguments_read = call.read_arguments or read_arguments(
        call.arguments, policy.max_tool_args_bytes, is_standard_only=is_standard_only
    )
    tool = find_tool(call.name, tools, policy.tool_name_aliases, is_exact=is_standard_only)
    tool_name = tool.name if tool else call.name.strip()
    if arguments_read.arguments is None:
        return DispatchedCall(
            call,
            arguments_read,
            tool_name,
            refusal=_refuse_unreadable(tool_name, arguments_read, policy.max_tool_args_bytes),
        )
    if tool is None:
        refusal = build_refusal(tool_name, "TOOL_NOT_ALLOWED", f"There is no tool named {tool_name!r} here.")
        return DispatchedCall(call, arguments_read, tool_name, refusal=refusal)
    schema_errors = list_schema_errors(tool, arguments_read.arguments) if policy.validate_arguments else ()
    if schema_errors:
        refusal = build_refusal(tool_name, "ARGUMENT_ERROR", _describe_schema_errors(schema_errors))
        return DispatchedCall(call, arguments_read, tool_name, refusal=refusal, schema_errors=schema_errors)
    arguments = copy_json(arguments_read.arguments)
    return DispatchedCall(
        call,
        arguments_read,
        tool_name,
        prepared_call=PreparedCall(call.id, tool_name, arguments, tool.alone, tool.timeout_seconds),
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


def build_tool_result(dispatched_call: DispatchedCall, outcome: Outcome | None, policy: Policy) -> ToolResult:
    """Return the result of a call: its refusal, or the tool's output.

    Args:
        dispatched_call: the checked call.
        outcome: what the tool returned; None for a refused call.
        policy: the settings of the run.

    Raises:
        ValueError: the call ran and has no outcome.
    """
    envelope = dispatched_call.refusal
    if envelope is None:
        if outcome is None:
            raise ValueError(f"no outcome for the call {dispatched_call.call.id}")
        envelope = build_envelope(outcome, dispatched_call.tool_name)
    rendered_envelope = render_envelope(
        envelope,
        policy.tool_result_transforms,
        max_bytes=policy.max_tool_output_bytes,
        call_id=dispatched_call.call.id,
    )
    return ToolResult(
        call=dispatched_call.call,
        arguments=dispatched_call.read_arguments.arguments,
        parse_status=dispatched_call.read_arguments.status,
        envelope=rendered_envelope.envelope,
        content=rendered_envelope.content,
        executed=dispatched_call.refusal is None,
        schema_errors=dispatched_call.schema_errors,
        output_replaced=rendered_envelope.is_replaced,
        changes=rendered_envelope.changes,
        duration_ms=outcome.duration_ms if outcome else 0.0,
    )


def _refuse_unreadable(name: str, arguments_read: ReadArguments, max_bytes: int) -> Envelope:
    if arguments_read.status == TOO_LARGE:
        message = f"Not executed: {arguments_read.problem}. Call the tool again with shorter arguments."
        return build_refusal(name, "ARGUMENTS_TOO_LARGE", message, {"max_bytes": max_bytes})
    message = (
        f"Not executed: the arguments are not a JSON object ({arguments_read.problem}). Send one JSON object only."
    )
    return build_refusal(name, "ARGUMENTS_JSON_PARSE_ERROR", message)


def _describe_schema_errors(schema_errors: tuple[SchemaError, ...]) -> str:
    return "Not executed: " + "; ".join(f"{error.path}: {error.message}" for error in schema_errors)
