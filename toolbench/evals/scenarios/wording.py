"""Filling of placeholders in texts, and rendering of the example messages in a scenario's prompt."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import Template
from typing import Any

from toolbench.engine.types import JsonObject


def fill_placeholders(value: Any, values: Mapping[str, str]) -> Any:
    """Return the JSON value with every `$name` and `${name}` in its strings replaced; `$$` becomes `$`.

    Raises:
        KeyError: A placeholder has no value.
        ValueError: A `$` begins neither a placeholder nor `$$`.
    """
    if isinstance(value, str):
        return _fill_text(value, values) if "$" in value else value
    if isinstance(value, list):
        return [fill_placeholders(item, values) for item in value]
    if isinstance(value, Mapping):
        return {key: fill_placeholders(item, values) for key, item in value.items()}
    return value


def _fill_text(text: str, values: Mapping[str, str]) -> str:
    return "".join([str(values[part]) if is_name else part for part, is_name in _split_text(text)])


@lru_cache(maxsize=1024)
def _split_text(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of a template as (part, is_name): literal texts and names of placeholders.

    Raises:
        ValueError: A `$` begins neither a placeholder nor `$$`.
    """
    parts, end = [], 0
    for match in Template.pattern.finditer(text):
        if match["invalid"] is not None:
            raise ValueError(f"Invalid placeholder at character {match.start()}")
        parts.append((text[end : match.start()], False))
        name = match["named"] or match["braced"]
        parts.append((name, True) if name else (Template.delimiter, False))
        end = match.end()
    return (*parts, (text[end:], False))


def render_example_call(call: JsonObject) -> str:
    """Return a call as one line of the tool's name and compact JSON: `state_get {"workspace_id":"…"}`."""
    return f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False, separators=(',', ':'))}"


def render_example(heading: str, messages: Sequence[Sequence[JsonObject]], closing: str) -> str:
    """Return the expected messages of the model as text; each begins with a line `Message N`.

    Args:
        heading: The first line.
        messages: The calls of each message but the last.
        closing: The text of the last message.
    """
    lines = [heading]
    for number, calls in enumerate(messages, start=1):
        lines += [f"Message {number}", *(render_example_call(call) for call in calls)]
    return "\n".join([*lines, f"Message {len(messages) + 1}", closing])
