"""Checks of a call, and the result of a call for the model.

A checked call may run, or it is refused and never runs. Reasons of a refusal, in the order of the checks: the arguments
are too large (ARGUMENTS_TOO_LARGE) or not a JSON object (ARGUMENTS_JSON_PARSE_ERROR); the tool is unknown or not
offered (TOOL_NOT_ALLOWED); the policy has `validate_arguments`, and the arguments violate the tool's JSON Schema
(ARGUMENT_ERROR, whose message lists the JSON paths and errors). A tool that runs and refuses its arguments gives
ARGUMENT_ERROR too, as the case study's scenarios expect; `ToolResult.schema_errors` is then empty.
"""

from toolbench.engine.arguments import TOO_LARGE, read_arguments
from toolbench.engine.events import Outcome, PreparedCall, ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.result_envelope import build_envelope, build_error_envelope, render_envelope
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import copy_json
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import Envelope, ReadArguments, SchemaError, ToolCall


@light(frozen=True, slots=True)
class DispatchedCall:
    """A checked call, with either `prepared_call` or `refusal` set.

    Attributes:
        tool_name: name of the tool; if there is no such tool, the name in the call.
        refusal: the envelope with the error that the model gets instead of a result.
        schema_errors: violations of the tool's schema, if these are the reason of the refusal.
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
        refusal = build_error_envelope(tool_name, "TOOL_NOT_ALLOWED", f"There is no tool named {tool_name!r} here.")
        return DispatchedCall(call, arguments_read, tool_name, refusal=refusal)
    schema_errors = list_schema_errors(tool, arguments_read.arguments) if policy.validate_arguments else ()
    if schema_errors:
        refusal = build_error_envelope(tool_name, "ARGUMENT_ERROR", _describe_schema_errors(schema_errors))
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
    """Return the result of a call: its refusal, or the envelope of the tool's outcome.

    Args:
        dispatched_call: the checked call.
        outcome: what the tool returned or raised; None for a refused call.
        policy: the settings of the run.

    Raises:
        ValueError: the call was not refused and `outcome` is None.
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
        was_executed=dispatched_call.refusal is None,
        schema_errors=dispatched_call.schema_errors,
        is_output_replaced=rendered_envelope.is_replaced,
        changes=rendered_envelope.changes,
        duration_ms=outcome.duration_ms if outcome else 0.0,
    )


def _refuse_unreadable(name: str, arguments_read: ReadArguments, max_bytes: int) -> Envelope:
    if arguments_read.status == TOO_LARGE:
        message = f"Not executed: {arguments_read.problem}. Call the tool again with shorter arguments."
        return build_error_envelope(name, "ARGUMENTS_TOO_LARGE", message, {"max_bytes": max_bytes})
    message = (
        f"Not executed: the arguments are not a JSON object ({arguments_read.problem}). Send one JSON object only."
    )
    return build_error_envelope(name, "ARGUMENTS_JSON_PARSE_ERROR", message)


def _describe_schema_errors(schema_errors: tuple[SchemaError, ...]) -> str:
    return "Not executed: " + "; ".join(f"{error.path}: {error.message}" for error in schema_errors)
