"""Choice of the method at an endpoint: the first of the policy's methods that the endpoint supports."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.capabilities.record import Capabilities
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject

AUTO = "auto"  # what a run asks for when it leaves the method to the endpoint's capabilities


@dataclass(frozen=True, slots=True)
class SkippedMethod:
    """A method that was not chosen, and why."""

    method: str
    why: str


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The chosen method.

    Attributes:
        method: "" if no method is possible.
        reason: why it was chosen, or what would help if none is possible.
        constraint: the constraint of the method constrained; "" for other methods.
        deprecated: True for text_json.
    """

    method: str
    reason: str
    passed: tuple[SkippedMethod, ...] = ()
    constraint: str = ""
    deprecated: bool = False

    def to_json(self) -> JsonObject:
        """Return the choice as JSON."""
        return {
            "method": self.method,
            "reason": self.reason,
            "passed": [{"method": refusal.method, "why": refusal.why} for refusal in self.passed],
            "deprecated": self.deprecated,
        }


def choose_method(paths: Iterable[str], capabilities: Capabilities) -> MethodChoice:
    """Return the first possible method.

    Native is possible unless something is known against it; template and constrained must be known to be supported.
    text_json with low stability is chosen only if no other method is possible.
    """
    passed: list[SkippedMethod] = []
    unstable = False
    for method in paths:
        why = find_method_obstacle(method, capabilities)
        if not why:
            return _build_choice(method, capabilities, passed)
        unstable = unstable or (method == "text_json" and capabilities.json_stability == "low")
        passed.append(SkippedMethod(method, why))
    if unstable:
        kept = [refusal for refusal in passed if refusal.method != "text_json"]
        return _build_choice("text_json", capabilities, kept)
    return MethodChoice(
        "", "No method is left: connect an endpoint with tool calls, or allow text_json.", tuple(passed)
    )


def find_method_refusal(method: str, capabilities: Capabilities) -> str:
    """Return why a method that a user names is refused before the first request; "" if it may be tried.

    An endpoint that accepts tools may be tried natively, whatever the model does with them: this is an experiment.
    """
    if method == "native":
        return _check_native(capabilities) if capabilities.tools_field == "refused" else ""
    if method == "template" and capabilities.raw_completion is False:
        return "There is no raw completion endpoint."
    return _check_constrained(capabilities) if method == "constrained" else ""


def find_method_obstacle(method: str, capabilities: Capabilities) -> str:
    """Return in a sentence why an endpoint does not support a method.

    It is "" if the endpoint supports it, or if nothing is known against it.
    """
    check = _OBSTACLE_CHECKS.get(method)
    return check(capabilities) if check else f"There is no method {method}."


def _check_native(known: Capabilities) -> str:
    if known.tools_field == "refused":
        return "The endpoint refuses requests with tools."
    if known.tools_field == "dropped":
        return "The endpoint drops the tools: the model never sees them."
    if known.supports_tool_use is False:
        note = f" ({known.text_format})" if known.text_format else ""
        return f"The model does not answer with tool calls in their own field{note}."
    return ""


def _check_template(known: Capabilities) -> str:
    if not known.raw_completion:
        return "No raw completion endpoint is known."
    if not known.text_format:
        return "It is not known in which dialect the model writes calls."
    return "" if known.text_format in TURN_SPECS else f"The turns of the dialect {known.text_format} are not known."


def _check_constrained(known: Capabilities) -> str:
    return "" if known.constrained else "The endpoint is not known to constrain answers."


def _check_text_json(known: Capabilities) -> str:
    return "Its calls in text can be read too seldom (stability low)." if known.json_stability == "low" else ""


_OBSTACLE_CHECKS: Mapping[str, Callable[[Capabilities], str]] = {
    "native": _check_native,
    "template": _check_template,
    "constrained": _check_constrained,
    "text_json": _check_text_json,
}


def _build_choice(method: str, known: Capabilities, passed: Sequence[SkippedMethod]) -> MethodChoice:
    reasons = {
        "native": "Tool calls are supported." if known.supports_tool_use else "Nothing is known against tool calls.",
        "template": f"The prompt is rendered in the dialect {known.text_format} and sent to the completion endpoint.",
        "constrained": f"Answers are held to the tools' schemas by {', '.join(known.constrained or ())}.",
        "text_json": "Calls are asked for as fenced JSON in the text; this way is deprecated.",
    }
    constraint = (known.constrained or ("",))[0] if method == "constrained" else ""
    return MethodChoice(method, reasons[method], tuple(passed), constraint, deprecated=method == "text_json")


def list_tool_problems(tools: Sequence[ToolDefinition], known: Capabilities) -> tuple[str, ...]:
    """Return why the endpoint would refuse these tools: their number, names, or keywords of their schemas."""
    troubles: list[str] = []
    if known.max_tools is not None and len(tools) > known.max_tools:
        troubles.append(f"There are {len(tools)} tools and the endpoint takes {known.max_tools}.")
    pattern = _compile_pattern(known.name_pattern)
    for tool in tools:
        if pattern is not None and not pattern.search(tool.name):
            troubles.append(f"The endpoint does not take the name {tool.name}: it wants {known.name_pattern}.")
        used = sorted(set(known.schema_dialect or ()) & _iterate_keywords(tool.parameters))
        if used:
            troubles.append(f"The endpoint refuses {', '.join(used)} in a schema, which {tool.name} has.")
    return tuple(troubles)


def _compile_pattern(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern else None
    except re.error:
        return None


def _iterate_keywords(schema: object) -> set[str]:
    """Return all keys of a schema at any depth, without names of properties."""
    found: set[str] = set()
    waiting: list[tuple[object, bool]] = [(schema, True)]
    while waiting:
        value, named = waiting.pop()
        if isinstance(value, Mapping):
            found |= set(value) if named else set()
            waiting += [(below, key not in ("properties", "$defs", "definitions")) for key, below in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(below, True) for below in value]
    return found
