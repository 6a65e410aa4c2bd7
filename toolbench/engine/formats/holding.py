"""Which calls a format can write so that they come back as they were."""

import re
from collections.abc import Iterable, Iterator, Sequence

from toolbench.engine.formats.coercion import typed_value
from toolbench.engine.formats.definition import Holds
from toolbench.engine.formats.registry import format_named
from toolbench.engine.formats.values import Known, TextCall, Tool, known_tools
from toolbench.engine.formats.writing import spelled


def can_hold(calls: Sequence[TextCall], *, format: str, tools: Iterable[Tool] = ()) -> bool:
    """Whether reading what `render` writes gives these names and arguments again. A few formats hold one call, or no
    text with their own tags in it, and some need the tools' schemas to know a value's type."""
    holds, known = format_named(format).holds, known_tools(tools)
    return len(calls) <= holds.calls and all(_holds(holds, call, known) for call in calls)


def _holds(holds: Holds, call: TextCall, known: Known) -> bool:
    if not re.fullmatch(holds.name, call.name):
        return False
    keys = _keys(call.arguments) if holds.bare_keys else iter(call.arguments)
    if not all(re.fullmatch(holds.key, key) for key in keys):
        return False
    if any(word in text for text in _texts(call.arguments) for word in holds.never):
        return False
    if holds.again is not None:
        return holds.again(call, known)
    return not holds.schema or all(_typed(call.name, key, value, known) for key, value in call.arguments.items())


def _typed(tool: str, key: str, value: object, known: Known) -> bool:
    read = typed_value(spelled(value), tool, key, known)
    return type(read) is type(value) and read == value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(item)
