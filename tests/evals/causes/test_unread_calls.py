"""Tests of the causes of calls that were not read, from the text, the reasoning and the engine's finding."""

import pytest

from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Message, Turn
from toolbench.evals.causes.unread_calls import (
    MAX_SEARCHED_CHARACTERS,
    MAX_TOOL_NAMES,
    classify_unknown_tool,
    classify_written_call,
    find_call_in_reasoning,
)
from toolbench.evals.record_counts import CONTENT_PATH, MESSAGE_PATH

TOOLS = (ToolDefinition("ping", "", {}), ToolDefinition("bash", "", {"properties": {"command": {"type": "string"}}}))
WHOLE = '<tool_call>{"name": "ping"}</tool_call>'
CUT = '<tool_call>{"name": "bash", "arguments": {"command": "ls -'


def classify_text(text: str) -> str:
    """Return the cause code of a text in which the engine finds one call."""
    (found,) = NativeMethod().parse_answer({"content": text}, TOOLS).findings
    return classify_written_call(Turn({}, text), found)


@pytest.mark.parametrize(
    "text",
    [
        CUT,
        '<tool_call>{"name": 123, "arguments": {}}</tool_call>',
        "<tool_call>\n<function>\n</function>\n</tool_call>",
        "<tool_call>\n<function=bash>\n<parameter=command>\nls",
        "<tool_call>bash<arg_key>command</arg_key><arg_value>rm -rf",
        '<|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "l',
        '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "l',
        "[bash(command=1",
        "[bash(command=ping())]",
        '{"name": "ping", "parameters": {invalid json}',
        '我来查一下。{"name": "bash", "arguments": {"command": "l',
        f"<think>hm</think>{CUT}",
        f"<think>so: {CUT}",
    ],
)
def test_classify_written_call_unparsable_text_is_call_unreadable(text: str) -> None:
    assert classify_text(text) == "call_unreadable"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (WHOLE, "call_in_tags"),
        (f"{WHOLE}\n{CUT}", "call_in_tags"),
        (f"<think>hm</think>{WHOLE}", "call_in_tags"),
        (f"I will.\n{WHOLE}", "call_in_tags"),
        ("<|python_start|>[ping(), bash(command='l", "call_in_text"),
        ("ping()", "call_in_text"),
        ("[bash('ls')]", "call_in_text"),
        ('```json\n{"tool": "ping", "args": {}}\n```', "call_in_text"),
        ('<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>', "call_in_text"),
        (f"<think>so: {WHOLE}", "call_in_reasoning"),
        ("<think>hm<tool_call>ping\n</tool_call>", "call_in_reasoning"),
        (f"Let me see.\n<think>{WHOLE}", "call_in_reasoning"),
    ],
)
def test_classify_written_call_complete_call_is_named_by_its_place(text: str, code: str) -> None:
    assert classify_text(text) == code


def test_classify_written_call_after_many_words_is_call_in_text() -> None:
    words = " ".join(f"word{number}" for number in range(2 * MAX_TOOL_NAMES))
    assert classify_text(f"{words}\nping()") == "call_in_text"


@pytest.mark.parametrize(
    ("text", "message", "path"),
    [
        (f"<think>{WHOLE}</think>", {}, CONTENT_PATH),
        ("", {"reasoning_content": WHOLE}, f"{MESSAGE_PATH}.reasoning_content"),
        ("<think>hm</think>\n", {"reasoning": WHOLE}, f"{MESSAGE_PATH}.reasoning"),
        (f"<think>so: {WHOLE}</think>No.", {}, ""),
        ("No.", {"reasoning": WHOLE}, ""),
        ("<think>hm</think>", {"reasoning": CUT}, ""),
    ],
)
def test_find_call_in_reasoning_needs_a_blank_answer(text: str, message: Message, path: str) -> None:
    assert find_call_in_reasoning(Turn(message, text)) == path


def test_find_call_in_reasoning_searches_the_last_characters_only() -> None:
    padding = " " * (MAX_SEARCHED_CHARACTERS - len(WHOLE))
    assert find_call_in_reasoning(Turn({"reasoning": WHOLE + padding}, "")) == f"{MESSAGE_PATH}.reasoning"
    assert find_call_in_reasoning(Turn({"reasoning": WHOLE + " " * MAX_SEARCHED_CHARACTERS}, "")) == ""


def test_find_call_in_reasoning_reads_name_with_prefix() -> None:
    thought = "It wants something. <|tool_calls_section_begin|><|tool_call_begin|>functions.state_get:0"
    thought += "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
    assert find_call_in_reasoning(Turn({"reasoning_content": thought}, "")) == f"{MESSAGE_PATH}.reasoning_content"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("multi_tool_use.parallel", "calls_wrapped"),
        ("state_get<|channel|>commentary", "name_unclean"),
        ("state_fetch", "tool_unknown"),
    ],
)
def test_classify_unknown_tool_follows_its_name(name: str, code: str) -> None:
    assert classify_unknown_tool(name) == code
