"""Limits of what is sent and kept: the size of a tool set, and the calls of one answer."""

from collections import Counter
from collections.abc import Sequence

from toolbench.engine.errors import PlanError
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import encode_json
from toolbench.engine.types import JsonObject

_MAX_NAMED_TOOLS = 5


def check_tool_set(tools_json: Sequence[JsonObject], policy: Policy) -> None:
    """Check number, size and names of the tools.

    Raises:
        PlanError: there are too many tools, they are too large together (the five largest are named), or a name
            repeats.
    """
    names = [tool["function"]["name"] for tool in tools_json]
    repeated_names = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated_names:
        raise PlanError(f"these tool names are used more than once: {', '.join(repeated_names)}")
    if len(names) > policy.max_tool_definitions_count:
        raise PlanError(f"there are {len(names)} tools; at most {policy.max_tool_definitions_count} are allowed")
    total_bytes = len(encode_json(list(tools_json)))
    if total_bytes > policy.max_tool_definitions_bytes:
        sizes_and_names = sorted(
            ((len(encode_json(tool)), name) for tool, name in zip(tools_json, names, strict=True)), reverse=True
        )
        largest_tools = ", ".join(f"{name} {size_bytes}" for size_bytes, name in sizes_and_names[:_MAX_NAMED_TOOLS])
        max_bytes = policy.max_tool_definitions_bytes
        raise PlanError(
            f"the tools are {total_bytes} bytes; at most {max_bytes} are allowed; the largest: {largest_tools}"
        )


def get_max_calls(policy: Policy, options: JsonObject) -> int | None:
    """Return how many calls of one answer are kept; None for all.

    One call is kept if the policy has `serial_calls`, or if it sets no number and the request has
    `parallel_tool_calls: false`.

    Args:
        policy: the settings of the run.
        options: the options of the request.
    """
    if policy.serial_calls:
        return 1
    if policy.max_tool_calls_per_turn is not None:
        return policy.max_tool_calls_per_turn
    return None if is_parallel_allowed(options) else 1


def is_parallel_allowed(options: JsonObject) -> bool:
    """Return whether calls of one answer may run at the same time; false only for `parallel_tool_calls: false`."""
    return options.get("parallel_tool_calls") is not False
