"""Detection of the text format in which an answer contains a call."""

import re
from collections.abc import Sequence

from toolbench.engine import formats
from toolbench.engine.types import JsonObject

_UNMARKED_FORMATS = ("json", "fenced_json")  # no start marker; first in `_FORMATS`, so they win a tie
_FORMATS = (
    *_UNMARKED_FORMATS,
    *(name for name in formats.list_format_names() if name not in (*_UNMARKED_FORMATS, formats.AUTO)),
)
_NAME_PATTERN = re.compile(r"[A-Za-z_][\w.-]{1,63}")
_MAX_NAMES = 40
# Every format searches the text, so a long text of start markers would block the event loop.
MAX_TEXT_CHARS = 8000
_MAX_TEXT_CHARS_WITHOUT_TOOLS = 4000


def detect_format(text: str, tools: Sequence[JsonObject]) -> str:
    """Return the format in which the text has calls of these tools, "" for none.

    Of several formats, the one whose calls have the most characters is returned. Only the first `MAX_TEXT_CHARS`
    characters of the text are used.

    Args:
        text: the text of an answer.
        tools: definitions of the tools in OpenAI's form.
    """
    beginning = text[:MAX_TEXT_CHARS]
    names = formats.select_distinct_formats(beginning, _FORMATS, tools)
    results = ((name, formats.parse(beginning, format=name, tools=tools)) for name in names)
    call_chars = {name: sum(len(call.raw_text) for call in result.calls) for name, result in results if result.calls}
    return max(call_chars, key=lambda name: call_chars[name], default="")


def detect_format_without_tools(text: str) -> str:
    """Return the format in which the text has calls of unknown tools, "" for none.

    The first `_MAX_NAMES` different words of the text count as names of tools. Only the first
    `_MAX_TEXT_CHARS_WITHOUT_TOOLS` characters of the text are used.
    """
    beginning = text[:_MAX_TEXT_CHARS_WITHOUT_TOOLS]
    words = list(dict.fromkeys(_NAME_PATTERN.findall(beginning)))[:_MAX_NAMES]
    tools = [{"type": "function", "function": {"name": word, "parameters": {}}} for word in words]
    return detect_format(beginning, tools)
