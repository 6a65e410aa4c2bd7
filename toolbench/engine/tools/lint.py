"""Checks of tools for properties that some endpoints refuse, ignore or misread."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs

from toolbench.engine.strict_json import encode_json, get_object, is_too_deep
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.typed_schemas import SCHEMAS_BY_NAME
from toolbench.engine.types import Finding

_DATA: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "lint.json").read_text("utf-8"))

MAX_TOOLS = 128
MAX_BYTES = 200_000  # of all definitions as compact JSON in OpenAI's format
STRICT_MAX_NAME_LENGTH, LENIENT_MAX_NAME_LENGTH = 64, 128  # characters: OpenAI's limit; the highest known limit
_NAME = re.compile(r"[a-zA-Z0-9_-]+")

# Keywords of JSON Schema whose value is a list of schemas, and those whose value is one schema.
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def lint_tools(definitions: Sequence[ToolDefinition]) -> tuple[Finding, ...]:
    """Return all findings, those on the whole set first; tools that are not exposed are ignored.

    The path of a finding on one tool begins with `$[index]`, with the tool's index in `definitions`; the path of a
    finding on the set is `$`.

    Codes: tools_count, tools_bytes, name_duplicate, name_empty, name_characters, name_dot, name_length,
    description_missing, schema_too_deep, schema_invalid, schema_root, required_empty, required_unknown,
    keyword_not_portable, format_not_portable.
    """
    exposed_tools = [(f"$[{index}]", tool) for index, tool in enumerate(definitions) if tool.exposed_to_model]
    findings = list(_lint_tool_set([tool for _, tool in exposed_tools]))
    for path, tool in exposed_tools:
        findings += [*_lint_name(path, tool), *_lint_description(path, tool), *_lint_schema(path, tool)]
    return tuple(findings)


def _lint_tool_set(tools: list[ToolDefinition]) -> Iterator[Finding]:
    """Yield the findings on the number, size and names of all tools."""
    if len(tools) > MAX_TOOLS:
        yield Finding("tools_count", f"There are {len(tools)} tools; many endpoints refuse more than {MAX_TOOLS}.")
    bytes_and_names = [
        (len(encode_json(tool.to_openai())), tool.name) for tool in tools if not is_too_deep(tool.parameters)
    ]
    total_bytes = sum(size for size, _ in bytes_and_names)
    if total_bytes > MAX_BYTES:
        largest_names = ", ".join(name for _, name in sorted(bytes_and_names, reverse=True)[:5])
        message = f"The definitions are {total_bytes} bytes, more than {MAX_BYTES}; the largest are {largest_names}."
        yield Finding("tools_bytes", message)
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            yield Finding("name_duplicate", f"{count} tools are called {name}.")


def _lint_name(path: str, tool: ToolDefinition) -> Iterator[Finding]:
    """Yield the findings on a tool's name."""
    name_path, name = f"{path}.name", tool.name
    if not name.strip():
        yield Finding("name_empty", "The tool has no name.", name_path)
    elif "." in name:
        yield Finding("name_dot", f"{name}: OpenAI and others refuse dots; an underscore is safe.", name_path)
    elif not _NAME.fullmatch(name):
        yield Finding("name_characters", f"{name}: only letters, digits, _ and - are safe.", name_path)
    if len(name) > LENIENT_MAX_NAME_LENGTH:
        yield Finding(
            "name_length",
            f"The name has {len(name)} characters; no known endpoint accepts more than {LENIENT_MAX_NAME_LENGTH}.",
            name_path,
        )
    elif len(name) > STRICT_MAX_NAME_LENGTH:
        yield Finding(
            "name_length", f"The name has {len(name)} characters; OpenAI accepts {STRICT_MAX_NAME_LENGTH}.", name_path
        )


def _lint_description(path: str, tool: ToolDefinition) -> Iterator[Finding]:
    if not tool.description.strip():
        yield Finding("description_missing", "The tool has no description: the model knows only its name.", path)


def _lint_schema(path: str, tool: ToolDefinition) -> Iterator[Finding]:
    """Yield the findings on a tool's schema, and those on its parts if the schema is valid."""
    schema_path, schema = f"{path}.parameters", tool.parameters
    if is_too_deep(schema):
        yield Finding("schema_too_deep", "The schema is nested too deeply to be sent.", schema_path)
        return
    if schema and schema.get("type") != "object":
        yield Finding(
            "schema_root", "The root of the schema needs the type object, since arguments are an object.", schema_path
        )
    schema_error = _find_schema_error(schema)
    if schema_error:
        yield Finding("schema_invalid", schema_error, schema_path)
        return
    for part_path, part in _iterate_schemas(schema_path, schema):
        yield from _lint_schema_part(part_path, part)


def _find_schema_error(schema: Mapping[str, Any]) -> str:
    """Return a sentence about the first schema error; "" for a valid schema.

    A reference to another document is an error, because it is not fetched.
    """
    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except ValueError as error:
        return f"The schema is not valid: {str(error).splitlines()[0][:200]}"
    return ""


def _lint_schema_part(path: str, schema: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings on one schema, without the schemas inside it."""
    for keyword in schema:
        if reason := _DATA["keywords"].get(keyword):
            yield Finding("keyword_not_portable", f"{keyword}: {reason}.", f"{path}.{keyword}")
    value_format = schema.get("format")
    if isinstance(value_format, str) and value_format not in _DATA["formats"]:
        message = f"Few endpoints enforce the format {value_format}; {', '.join(_DATA['formats'])} are safe."
        yield Finding("format_not_portable", message, f"{path}.format")
    required = schema.get("required")
    if required == []:
        yield Finding("required_empty", "Some endpoints refuse an empty list in required, so it is not sent.", path)
    unknown_names = set(required or ()) - set(schema.get("properties", ()))
    if unknown_names:
        yield Finding("required_unknown", f"Required, but not in properties: {', '.join(sorted(unknown_names))}.", path)


def _iterate_schemas(path: str, schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path, schema) for a schema and all schemas inside it; names of properties never count as keywords."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword in SCHEMAS_BY_NAME:
        for name, part in get_object(schema.get(keyword)).items():
            yield from _iterate_schemas(f"{path}.{keyword}.{name}", part)
    for keyword in SCHEMA_LISTS:
        parts = schema.get(keyword)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _iterate_schemas(f"{path}.{keyword}[{index}]", part)
    for keyword in SCHEMAS:
        yield from _iterate_schemas(f"{path}.{keyword}", schema.get(keyword))
