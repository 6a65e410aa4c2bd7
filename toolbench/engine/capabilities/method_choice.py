"""Choice of the method at an endpoint: the first of the policy's methods that the endpoint supports."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.capabilities.record import Capabilities
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject

AUTO = "auto"  # the endpoint's capabilities decide the method


@dataclass(frozen=True, slots=True)
class SkippedMethod:
    """A method that was not chosen, and why."""

    method: str
    reason: str


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The chosen method, the reason for it and the methods that were skipped.

    Attributes:
        method: the name of the method; "" if no method is possible.
        reason: why the method was chosen; if no method is possible, what would make one possible.
        skipped_methods: the methods that were considered and are not possible, in the order of the policy.
        constraint: the first supported constraint if the method is `constrained`; "" for other methods.
        is_deprecated: whether the method is `text_json`.
    """

    method: str
    reason: str
    skipped_methods: tuple[SkippedMethod, ...] = ()
    constraint: str = ""
    is_deprecated: bool = False

    def to_json(self) -> JsonObject:
        """Return the choice as JSON, without the constraint."""
        return {
            "method": self.method,
            "reason": self.reason,
            "passed": [
                {"method": skipped_method.method, "why": skipped_method.reason}
                for skipped_method in self.skipped_methods
            ],
            "deprecated": self.is_deprecated,
        }


def choose_method(methods: Iterable[str], capabilities: Capabilities) -> MethodChoice:
    """Return the first of these methods that is possible at the endpoint.

    Native is possible unless a capability excludes it; template and constrained must be known to be supported.
    text_json with low stability (`json_stability`) is chosen only if no other method is possible.

    Args:
        methods: names of methods, in the order in which they are considered.
        capabilities: the capabilities of the endpoint.
    """
    skipped_methods: list[SkippedMethod] = []
    has_unstable_text_json = False
    for method in methods:
        obstacle = find_method_obstacle(method, capabilities)
        if not obstacle:
            return _build_choice(method, capabilities, skipped_methods)
        has_unstable_text_json = has_unstable_text_json or (
            method == "text_json" and capabilities.json_stability == "low"
        )
        skipped_methods.append(SkippedMethod(method, obstacle))
    if has_unstable_text_json:
        skipped_others = [skipped_method for skipped_method in skipped_methods if skipped_method.method != "text_json"]
        return _build_choice("text_json", capabilities, skipped_others)
    return MethodChoice(
        "", "No method is left: connect an endpoint with tool calls, or allow text_json.", tuple(skipped_methods)
    )


def find_method_refusal(method: str, capabilities: Capabilities) -> str:
    """Return why a method that a user names is refused before the first request; "" if it may be tried.

    Native is refused if the endpoint refuses requests with tools. If the endpoint drops the tools, native may be tried,
    so that an experiment can test what the model does without them. Template is refused if the endpoint is known to
    have no raw completion endpoint, constrained if no constraint is known to be supported. Other methods are never
    refused.
    """
    if method == "native":
        return _find_native_obstacle(capabilities) if capabilities.tools_field == "refused" else ""
    if method == "template" and capabilities.raw_completion is False:
        return "There is no raw completion endpoint."
    return _find_constrained_obstacle(capabilities) if method == "constrained" else ""


def find_method_obstacle(method: str, capabilities: Capabilities) -> str:
    """Return a sentence that says why a method is not possible at an endpoint.

    Returns:
        "" if the method is possible: native and text_json unless a capability excludes them, template and constrained
        only if the endpoint is known to support them.
    """
    find_obstacle = _OBSTACLE_FINDERS.get(method)
    return find_obstacle(capabilities) if find_obstacle else f"There is no method {method}."


def _find_native_obstacle(capabilities: Capabilities) -> str:
    if capabilities.tools_field == "refused":
        return "The endpoint refuses requests with tools."
    if capabilities.tools_field == "dropped":
        return "The endpoint drops the tools: the model never sees them."
    if capabilities.supports_tool_use is False:
        format_note = f" ({capabilities.text_format})" if capabilities.text_format else ""
        return f"The model does not answer with tool calls in their own field{format_note}."
    return ""


def _find_template_obstacle(capabilities: Capabilities) -> str:
    if not capabilities.raw_completion:
        return "No raw completion endpoint is known."
    if not capabilities.text_format:
        return "The text format in which the model writes calls is not known."
    return (
        ""
        if capabilities.text_format in TURN_SPECS
        else f"The turns of the text format {capabilities.text_format} are not known."
    )


def _find_constrained_obstacle(capabilities: Capabilities) -> str:
    return "" if capabilities.constrained else "The endpoint is not known to constrain answers."


def _find_text_json_obstacle(capabilities: Capabilities) -> str:
    return (
        "The model's calls in text can be read too seldom (stability low)."
        if capabilities.json_stability == "low"
        else ""
    )


_OBSTACLE_FINDERS: Mapping[str, Callable[[Capabilities], str]] = {
    "native": _find_native_obstacle,
    "template": _find_template_obstacle,
    "constrained": _find_constrained_obstacle,
    "text_json": _find_text_json_obstacle,
}


def _build_choice(method: str, capabilities: Capabilities, skipped_methods: Sequence[SkippedMethod]) -> MethodChoice:
    reasons = {
        "native": "Tool calls are supported."
        if capabilities.supports_tool_use
        else "Nothing is known against tool calls.",
        "template": f"The prompt is rendered in the text format {capabilities.text_format} "
        "and sent to the completion endpoint.",
        "constrained": "The endpoint restricts answers to the tools' schemas by "
        f"{', '.join(capabilities.constrained or ())}.",
        "text_json": "Calls are requested as fenced JSON in the text; this method is deprecated.",
    }
    constraint = (capabilities.constrained or ("",))[0] if method == "constrained" else ""
    return MethodChoice(
        method, reasons[method], tuple(skipped_methods), constraint, is_deprecated=method == "text_json"
    )


def list_tool_problems(tools: Sequence[ToolDefinition], capabilities: Capabilities) -> tuple[str, ...]:
    """Return sentences that say why the endpoint would refuse these tools; () if no reason is known.

    Possible reasons are the number of tools, their names and keywords of their schemas.
    """
    problems: list[str] = []
    if capabilities.max_tools is not None and len(tools) > capabilities.max_tools:
        problems.append(f"There are {len(tools)} tools and the endpoint accepts at most {capabilities.max_tools}.")
    pattern = _compile_pattern(capabilities.name_pattern)
    for tool in tools:
        if pattern is not None and not pattern.search(tool.name):
            problems.append(
                f"The endpoint accepts only tool names that match {capabilities.name_pattern}, unlike {tool.name}."
            )
        refused_keywords = sorted(set(capabilities.schema_dialect or ()) & _collect_keywords(tool.parameters))
        if refused_keywords:
            problems.append(
                f"The endpoint refuses schemas with {', '.join(refused_keywords)}, such as that of {tool.name}."
            )
    return tuple(problems)


def _compile_pattern(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError):
        return None


def _collect_keywords(schema: object) -> set[str]:
    """Return all keys of a schema at any depth, without names of properties and definitions.

    Keys of objects in values, such as those of `default`, are included.
    """
    keywords: set[str] = set()
    pending_values: list[tuple[object, bool]] = [(schema, True)]
    while pending_values:
        value, is_schema = pending_values.pop()
        if isinstance(value, Mapping):
            keywords |= set(value) if is_schema else set()
            pending_values += [
                (inner_value, not is_schema or key not in ("properties", "$defs", "definitions"))
                for key, inner_value in value.items()
            ]
        elif isinstance(value, list | tuple):
            pending_values += [(inner_value, True) for inner_value in value]
    return keywords
