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

    A few formats hold only one call, or no text that contains their own tags. Some need the schemas of `tools` to know
    the type of a value.
    """
    holds, known = get_format(format).holds, build_tool_schemas(tools)
    return len(calls) <= holds.calls and all(_is_call_safe(holds, call, known) for call in calls)


def _is_call_safe(holds: RoundTripLimits, call: TextCall, known: ToolSchemas) -> bool:
    if not re.fullmatch(holds.name, call.name):
        return False
    keys = _iterate_keys(call.arguments) if holds.bare_keys else iter(call.arguments)
    if not all(re.fullmatch(holds.key, key) for key in keys):
        return False
    if any(word in text for text in _iterate_texts(call.arguments) for word in holds.never):
        return False
    if holds.again is not None:
        return holds.again(call, known)
    return not holds.schema or all(
        _is_value_safe(call.name, key, value, known) for key, value in call.arguments.items()
    )


def _is_value_safe(tool: str, key: str, value: object, known: ToolSchemas) -> bool:
    read = convert_value(render_tag_value(value), tool, key, known)
    return type(read) is type(value) and read == value


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
