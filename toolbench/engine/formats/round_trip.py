"""Check of calls for names and values that a text format cannot write and read back unchanged."""

import re
from collections.abc import Iterable, Iterator, Sequence

from toolbench.engine.formats.call_writers import render_tag_value
from toolbench.engine.formats.coercion import convert_value
from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.specification import RoundTripLimits
from toolbench.engine.formats.types import TextCall, Tool, ToolSchemas, build_tool_schemas


def is_round_trip_safe(calls: Sequence[TextCall], *, format: str, tools: Iterable[Tool] = ()) -> bool:
    """Return whether parsing the output of `render` gives the same names and arguments.

    A format may be unable to write some names or keys, or strings that contain its own tags. Some formats need the
    schemas of `tools` to restore the types of values.

    Raises:
        PlanError: the format is unknown.
    """
    limits, offered_tools = get_format(format).round_trip_limits, build_tool_schemas(tools)
    return all(_is_call_safe(limits, call, offered_tools) for call in calls)


def _is_call_safe(limits: RoundTripLimits, call: TextCall, offered_tools: ToolSchemas) -> bool:
    if not re.fullmatch(limits.name_pattern, call.name) or not any(map(str.isalnum, call.name)):
        return False
    keys = _iterate_keys(call.arguments) if limits.checks_nested_keys else iter(call.arguments)
    if not all(re.fullmatch(limits.key_pattern, key) for key in keys):
        return False
    forbidden_texts = limits.forbidden_texts
    if any(forbidden_text in text for text in _iterate_texts(call.arguments) for forbidden_text in forbidden_texts):
        return False
    if limits.is_call_safe is not None:
        return limits.is_call_safe(call, offered_tools)
    return not limits.needs_schema or all(
        _is_value_safe(call.name, key, value, offered_tools) for key, value in call.arguments.items()
    )


def _is_value_safe(tool_name: str, key: str, value: object, offered_tools: ToolSchemas) -> bool:
    parsed_value = convert_value(render_tag_value(value), tool_name, key, offered_tools)
    return type(parsed_value) is type(value) and parsed_value == value


def _iterate_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _iterate_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_texts(item)


def _iterate_keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _iterate_keys(item)
