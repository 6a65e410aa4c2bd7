"""Detection of the text format of a call that is written in a text."""

import re
from collections.abc import Sequence

from toolbench.engine import formats
from toolbench.engine.types import JsonObject

_UNMARKED_FORMATS = ("json", "fenced_json")  # formats of a text without markers
_FORMATS = (
    *_UNMARKED_FORMATS,
    *(name for name in formats.list_format_names() if name not in (*_UNMARKED_FORMATS, formats.AUTO)),
)
_NAME_PATTERN = re.compile(r"[A-Za-z_][\w.-]{1,63}")
_MAX_NAMES = 40


def detect_format(text: str, tools: Sequence[JsonObject]) -> str:
    """Return the format that reads a call of one of these tools, "" for none.

    Of several formats, the one that assigns most of the text to calls is returned.
    """
    read = ((name, formats.parse(text, format=name, tools=tools)) for name in _FORMATS)
    known = {name: sum(len(call.raw) for call in found.calls) for name, found in read if found.calls}
    return max(known, key=lambda name: known[name], default="")


def detect_format_without_tools(text: str) -> str:
    """Return the format of a text whose tools are unknown: any word of it may be a tool's name.

    At most the first 4,000 characters and 40 words are used.
    """
    words = list(dict.fromkeys(_NAME_PATTERN.findall(text[:4000])))[:_MAX_NAMES]
    tools = [{"type": "function", "function": {"name": word, "parameters": {}}} for word in words]
    return detect_format(text[:4000], tools)
