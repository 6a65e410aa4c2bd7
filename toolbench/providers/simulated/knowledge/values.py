"""Values that simulated models choose for arguments with an enum or a known name."""

import re

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.knowledge.plain_answers import find_topic

# The group is `New York` in `the weather in New York`.
PLACE_PATTERN = re.compile(r"\b(?:in|for|at|of|to|near)\s+([A-ZÀ-Ý][\w'’.-]*\w(?:\s+[A-ZÀ-Ý][\w'’.-]*\w)*)")
PLACE_KEYS = ("city", "place", "location", "town")
REASON_KEYS = ("reasoning", "reason", "explanation")
CONFIDENCE_VALUE = 0.9


def fill_arguments(tool: JsonObject, question: str) -> JsonObject | None:
    """Return values for the required arguments of a tool, or for all if it has no list of required ones.

    Returns:
        None if one of these arguments has no known value, or if there are none.
    """
    parameters = get_object(tool.get("parameters"))
    properties = get_object(parameters.get("properties"))
    arguments: JsonObject = {}
    required = parameters.get("required")
    for name in [name for name in required if isinstance(name, str)] if isinstance(required, list) else properties:
        value = find_known_value(name, get_object(properties.get(name)), question)
        if value is None:
            return None
        arguments[name] = value
    return arguments or None


def find_known_value(name: str, schema: JsonObject, question: str) -> object:
    """Return the value of an argument with an enum or a known name.

    Returns:
        None if the argument has neither, if the question mentions no value of the enum, or, for the name of a place, if
        the question mentions no place.
    """
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return find_topic(question, [str(option) for option in options])
    if name in PLACE_KEYS:
        places = PLACE_PATTERN.findall(question)
        return str(places[-1]) if places else None
    if name in REASON_KEYS:
        return "Chosen by the words of the question."
    return CONFIDENCE_VALUE if name == "confidence" else None
