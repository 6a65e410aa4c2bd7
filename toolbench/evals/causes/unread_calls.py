"""Classification of calls that could not be run: in the text, in the reasoning, or of an unknown tool."""

import re

from toolbench.engine import formats
from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_text_reasoning
from toolbench.engine.methods.json_in_text import has_readable_call
from toolbench.engine.transforms.calls import LEAKED_TOKEN, PARALLEL_TOOL_NAMES
from toolbench.engine.types import Finding, Turn
from toolbench.engine.visible_text import is_blank
from toolbench.evals.record_counts import CONTENT_PATH, MESSAGE_PATH

REASONING_FIELDS = ("reasoning_content", "reasoning")
MAX_SEARCHED_CHARACTERS = 4000  # from the end of the reasoning
MAX_TOOL_NAMES = 40
_TOOL_NAME = re.compile(r"[A-Za-z_][\w.-]{1,63}")
# Most text formats begin a call with one of these marks; plain or fenced JSON, ReAct and Functionary do not.
_CALL_MARKS = ("<", "[")
_CALL_TAG = re.compile(r"<tool_call[\s>]")  # not the end marker `<tool_call|>` of another family


def classify_written_call(answer: Turn, finding: Finding) -> str:
    """Return the code of the cause for an answer in whose text the engine found a call.

    The cause depends on whether the call can be read, is in the reasoning or is in a tag `<tool_call>`. The tools
    offered are not known here, so any word may be the name of a tool; a name in the message of the finding is tried
    first.
    """
    text = remove_partial_reasoning(answer.text)
    names = _find_tool_names(answer.text, finding.message)
    if has_readable_call(text, names):
        return "call_in_tags" if _CALL_TAG.search(text) else "call_in_text"
    if text != answer.text and has_readable_call(answer.text, names):
        return "call_in_reasoning"
    return "call_unreadable"


def find_call_in_reasoning(answer: Turn) -> str:
    """Return the JSON path of the reasoning that contains a call, if the answer has no text beside it; else ""."""
    text, reasoning = split_text_reasoning(answer.text)
    if not is_blank(text):
        return ""
    if _has_call(reasoning):
        return CONTENT_PATH
    return next((f"{MESSAGE_PATH}.{field}" for field in REASONING_FIELDS if _has_call(answer.message.get(field))), "")


def classify_unknown_tool(name: str) -> str:
    """Return the code of the cause for a call of a tool that does not exist, from the name in the call."""
    if name in PARALLEL_TOOL_NAMES:
        return "calls_wrapped"
    return "name_unclean" if LEAKED_TOKEN.search(name) else "tool_unknown"


def _has_call(text: object) -> bool:
    """Return whether a text contains a call.

    Only texts with one of _CALL_MARKS are parsed, because most texts have none. A call without a mark is missed.
    """
    if not isinstance(text, str) or not any(mark in text for mark in _CALL_MARKS):
        return False
    searched = text[-MAX_SEARCHED_CHARACTERS:]
    return bool(formats.parse(searched, tools=[{"name": word} for word in _find_tool_names(searched)]).calls)


def _find_tool_names(text: str, message: str = "") -> list[str]:
    """Return words of a text that may be the name of a tool, each once, at most MAX_TOOL_NAMES.

    A word that `message`, the message of a finding, has in parentheses comes first. A word with dots also gives its
    last part: `functions.get` gives `get`.
    """
    words = dict.fromkeys(part for word in _TOOL_NAME.findall(text) for part in (word, word.rpartition(".")[2]) if part)
    return sorted(words, key=lambda word: f"({word})" not in message)[:MAX_TOOL_NAMES]
