"""Harmony, the format of gpt-oss: messages with a channel and, if they are calls, a recipient."""

import re
from dataclasses import dataclass

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_writers import build_enclosed_result_writer, render_spaced_json
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import clean_name, parse_object
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import (
    TRUNCATED_BLOCK,
    UNREADABLE_BLOCK,
    Block,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.formats.typescript import render_namespace

START_TOKEN, CHANNEL_TOKEN, MESSAGE_TOKEN = "<|start|>", "<|channel|>", "<|message|>"
END_TOKENS = ("<|end|>", "<|call|>", "<|return|>")
_MAX_HEADING_WORDS = 2  # words in the heading of a message without a call: a role or channel, and a content type
_RECIPIENT = re.compile(r"to=(?:functions\.)?(?P<name>[^\s<]+)")
_ANALYSIS = re.compile(r"(?:^|<\|channel\|>)\s*analysis")


@dataclass(frozen=True, slots=True)
class HarmonyReader:
    """A reader of one message: a call if it has a recipient, reasoning in the channel `analysis`, else text."""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading, message_marker, content = body.partition(MESSAGE_TOKEN)
        recipient = _RECIPIENT.search(heading)
        if not message_marker and not recipient and len(heading.split()) > _MAX_HEADING_WORDS:
            return UNREADABLE_BLOCK
        if not message_marker and not recipient:
            return ParsedBlock()
        if not message_marker:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        if recipient:
            return _read_call(clean_name(recipient["name"]), content, is_truncated=is_truncated)
        return ParsedBlock(reasoning=content) if _ANALYSIS.search(heading) else ParsedBlock(text=content)


def _read_call(name: str, content: str, *, is_truncated: bool) -> ParsedBlock:
    if not content.strip():
        return TRUNCATED_BLOCK if is_truncated else ParsedBlock((ParsedCall(name, {}),))
    try:
        arguments = parse_object(read_value(content))
    except InvalidJsonError:
        arguments = None
    if arguments is None:
        return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
    return ParsedBlock((ParsedCall(name, arguments),))


def _render_call(call: TextCall, index: int) -> str:
    message_start = START_TOKEN + "assistant" if index else ""  # the prompt starts the first message
    header = f"commentary to=functions.{call.name} <|constrain|>json"
    return f"{message_start}{CHANNEL_TOKEN}{header}{MESSAGE_TOKEN}{render_spaced_json(call.arguments)}{END_TOKENS[1]}"


_MESSAGE_READER = HarmonyReader()
HARMONY = TextFormat(
    "harmony",
    (
        Block(CHANNEL_TOKEN, _MESSAGE_READER, END_TOKENS, (START_TOKEN,)),
        Block(START_TOKEN, _MESSAGE_READER, END_TOKENS, (START_TOKEN,)),
    ),
    CallLayout(_render_call, between_calls=""),
    PromptLayout(
        lambda tools: f"# Tools\n\n## functions\n\n{render_namespace(tools)}",
        build_enclosed_result_writer(
            f"{START_TOKEN}functions.{{name}} to=assistant{CHANNEL_TOKEN}commentary{MESSAGE_TOKEN}", END_TOKENS[0]
        ),
        results_between="",
    ),
    dropped_tokens=END_TOKENS,
    reasoning_markers=(),
    written_reasoning_markers=(f"{CHANNEL_TOKEN}analysis{MESSAGE_TOKEN}", END_TOKENS[0]),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r"[^\s<|｜=]+", forbidden_texts=(*END_TOKENS, START_TOKEN)),
)
