"""Texts with `$name` placeholders, and the layout of a scenario's prompt."""

import json
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from toolbench.engine.types import JsonObject


def fill_placeholders(text: Any, values: Mapping[str, str]) -> Any:
    """Return the same JSON value with every `$name` in its strings replaced."""
    if isinstance(text, str):
        return Template(text).substitute(values) if "$" in text else text
    if isinstance(text, list):
        return [fill_placeholders(item, values) for item in text]
    if isinstance(text, Mapping):
        return {key: fill_placeholders(item, values) for key, item in text.items()}
    return text


def render_example_call(call: JsonObject) -> str:
    """Return a call on one line that a program can read too: `state_get {"workspace_id":"…"}`."""
    return f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False, separators=(',', ':'))}"


def render_example(heading: str, messages: Sequence[Sequence[JsonObject]], closing: str) -> str:
    """Return the expected exchange as text.

    Each message is a line `Message N`, followed by one line per call; the last one has the closing sentence.
    """
    lines = [heading]
    for number, calls in enumerate(messages, start=1):
        lines += [f"Message {number}", *(render_example_call(call) for call in calls)]
    return "\n".join([*lines, f"Message {len(messages) + 1}", closing])
