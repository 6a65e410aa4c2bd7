"""Request options: what the user may add to a request's body, and what belongs to the loop alone."""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.policy.layered_key import merge_objects
from toolbench.engine.types import JsonObject

RESERVED_KEYS = frozenset({"model", "messages", "tools", "tool_choice", "response_format"})


def merge_options(defaults: Mapping[str, Any], *overrides: Mapping[str, Any]) -> JsonObject:
    """A new object: objects are merged at every depth, anything else is replaced, the later wins. Top-level keys in
    RESERVED are dropped wherever they come from."""
    options: JsonObject = {}
    for layer in (defaults, *overrides):
        options = merge_objects(options, {key: value for key, value in layer.items() if key not in RESERVED_KEYS})
    return options
