"""Checks of a test case's expected calls against the schemas of its tools.

A model that follows the schema cannot make an expected call that violates it, so the case probably has a mistake.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.json_paths import build_member_path
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import SchemaError
from toolbench.evals.user_cases.definition import ExpectedCall, UserCase
from toolbench.evals.user_cases.matchers import is_matcher

# Keywords of a schema that may permit arguments which `properties` does not name.
_OPEN_KEYWORDS = {"additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"}


def list_schema_violations(case: UserCase) -> tuple[str, ...]:
    """Return the violations of the expected calls as texts such as `cancel_order $.order: is required`.

    The value of an argument is not checked if it contains a matcher. A missing argument is no violation if the call may
    have further arguments.
    """
    tools = {tool.name: tool for tool in case.definitions}
    return tuple(
        f"{call.name} {error.path}: {error.message}"
        for call in case.expect.calls
        for error in (*_find_violations(tools[call.name], call), *_find_unknown_arguments(tools[call.name], call))
    )


def _find_violations(tool: ToolDefinition, call: ExpectedCall) -> Iterator[SchemaError]:
    literals = {name: value for name, value in call.arguments.items() if not _has_matcher(value)}
    matcher_paths = {build_member_path("$", name) for name in call.arguments.keys() - literals.keys()}
    for error in list_schema_errors(tool, literals):
        if not (error.kind == "missing" and (call.more or error.path in matcher_paths)):
            yield error


def _find_unknown_arguments(tool: ToolDefinition, call: ExpectedCall) -> Iterator[SchemaError]:
    """Yield an error for each argument that the schema permits but does not name."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, Mapping) or tool.parameters.keys() & _OPEN_KEYWORDS:
        return
    for name in call.arguments:
        if name not in properties:
            yield SchemaError(build_member_path("$", name), "extra", "is not among the tool's arguments")


def _has_matcher(value: Any) -> bool:
    if is_matcher(value):
        return True
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(map(_has_matcher, children))
