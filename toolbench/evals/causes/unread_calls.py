"""Calls that no transform read: what can still be told from an answer's reasoning and from a tool's name."""

import re

from toolbench.engine import formats
from toolbench.engine.messages import Message
from toolbench.engine.transforms.calls import PARALLEL, TOKEN

REASONING = ("reasoning_content", "reasoning")
MOST_LETTERS = 4000  # of reasoning that are searched
MOST_NAMES = 40
_NAME = re.compile(r"[A-Za-z_][\w.-]{1,63}")
_MARKS = ("<", "[")  # one of them opens a call in every dialect that is no plain JSON


def call_in_reasoning(message: Message) -> str:
    """Return the field of a message whose reasoning holds a call in the dialect of a model family, "" for none."""
    return next((field for field in REASONING if _holds_call(message.get(field))), "")


def unknown_tool(name: str) -> str:
    """Return the cause for a call of a tool that does not exist, from the name that the model gave it."""
    if name in PARALLEL:
        return "calls_wrapped"
    return "name_unclean" if TOKEN.search(name) else "tool_unknown"


def _holds_call(text: object) -> bool:
    if not isinstance(text, str) or not any(mark in text for mark in _MARKS):
        return False
    end = text[-MOST_LETTERS:]
    words = list(dict.fromkeys(_NAME.findall(end)))[:MOST_NAMES]
    return bool(formats.parse(end, tools=[{"name": word} for word in words]).calls)
