"""Argument values found in a question by plain patterns: enough for a player to be right, not a language model."""

import re

from toolbench.engine.messages import JsonObject
from toolbench.providers.simulated.general_knowledge import topic_of

PLACE = re.compile(r"\b(?:in|for|at|of|to|near)\s+([A-ZÀ-Ý][\w'’.-]*\w(?:\s+[A-ZÀ-Ý][\w'’.-]*\w)*)")
PLACE_KEYS = ("city", "place", "location", "town")
REASON_KEYS = ("reasoning", "reason", "explanation")
SURE = 0.9


def fill_arguments(tool: JsonObject, question: str) -> JsonObject | None:
    """Arguments for one tool, or None when the question holds nothing for it."""
    parameters = _object(tool.get("parameters"))
    properties = _object(parameters.get("properties"))
    filled: JsonObject = {}
    for name in parameters.get("required", list(properties)):
        value = known_value(name, _object(properties.get(name)), question)
        if value is None:
            return None
        filled[name] = value
    return filled or None


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def known_value(name: str, schema: JsonObject, question: str) -> object:
    """Of the few arguments that are known by their names; None of any other."""
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return topic_of(question, [str(option) for option in options])
    if name in PLACE_KEYS:
        found = PLACE.findall(question)
        return str(found[-1]) if found else None
    if name in REASON_KEYS:
        return "Chosen by the words of the question."
    return SURE if name == "confidence" else None
