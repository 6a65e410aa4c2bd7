"""Check whether a text format can write calls so that they are read back unchanged."""

import re
from collections.abc import Iterable, Iterator, Sequence

from toolbench.engine.formats.call_writers import render_tag_value
from toolbench.engine.formats.coercion import convert_value
from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.specification import RoundTripLimits
from toolbench.engine.formats.types import TextCall, Tool, ToolSchemas, build_tool_schemas


def is_round_trip_safe(calls: Sequence[TextCall], *, format: str, tools: Iterable[Tool] = ()) -> bool:
    """Return whether parsing the output of `render` gives the same names and arguments.

    A few formats can write only one call, or no string that contains their own tags. Some need the schemas of `tools`
    to restore the types of values.
    """
    limits, known = get_format(format).holds, build_tool_schemas(tools)
    return len(calls) <= limits.calls and all(_is_call_safe(limits, call, known) for call in calls)


def _is_call_safe(limits: RoundTripLimits, call: TextCall, known: ToolSchemas) -> bool:
    if not re.fullmatch(limits.name, call.name):
        return False
    keys = _iterate_keys(call.arguments) if limits.bare_keys else iter(call.arguments)
    if not all(re.fullmatch(limits.key, key) for key in keys):
        return False
    if any(forbidden in text for text in _iterate_texts(call.arguments) for forbidden in limits.never):
        return False
    if limits.again is not None:
        return limits.again(call, known)
    return not limits.schema or all(
        _is_value_safe(call.name, key, value, known) for key, value in call.arguments.items()
    )


def _is_value_safe(tool: str, key: str, value: object, known: ToolSchemas) -> bool:
    parsed_value = convert_value(render_tag_value(value), tool, key, known)
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
