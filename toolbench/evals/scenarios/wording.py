"""Texts with `$names` in them, and the way a scenario's prompt is put together."""

import json
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from toolbench.engine.types import JsonObject


def fill_placeholders(text: Any, values: Mapping[str, str]) -> Any:
    """The same JSON value with every `$name` inside its strings replaced."""
    if isinstance(text, str):
        return Template(text).substitute(values) if "$" in text else text
    if isinstance(text, list):
        return [fill_placeholders(item, values) for item in text]
    if isinstance(text, Mapping):
        return {key: fill_placeholders(item, values) for key, item in text.items()}
    return text


def render_example_call(call: JsonObject) -> str:
    """`state_get {"workspace_id":"…"}`: a call on one line, so that a program can read it too."""
    return f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False, separators=(',', ':'))}"


def render_example(heading: str, messages: Sequence[Sequence[JsonObject]], closing: str) -> str:
    """The exchange as the model should have it: `Message N` on a line, below it one line per call; last the closing
    sentence."""
    lines = [heading]
    for number, calls in enumerate(messages, start=1):
        lines += [f"Message {number}", *(render_example_call(call) for call in calls)]
    return "\n".join([*lines, f"Message {len(messages) + 1}", closing])
