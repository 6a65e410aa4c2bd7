"""gpt-oss: messages with a channel and a recipient."""

import re
from dataclasses import dataclass

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_writers import enclosed_result_writer, render_spaced_json
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import clean_name, parse_object
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    FoundCall,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.formats.typescript import render_namespace

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_MAX_HEADING_WORDS = 2  # words in the heading of a message without a call: a role or channel, and a content type
_RECIPIENT = re.compile(r"to=(?:functions\.)?(?P<name>[^\s<]+)")
_ANALYSIS = re.compile(r"(?:^|<\|channel\|>)\s*analysis")


@dataclass(frozen=True, slots=True)
class HarmonyReader:
    """A reader of one message: a call if it has a recipient, reasoning in the channel analysis, otherwise text."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading, message_marker, content = body.partition(MESSAGE)
        recipient = _RECIPIENT.search(heading)
        if not message_marker and not recipient and len(heading.split()) > _MAX_HEADING_WORDS:
            return ParsedBlock(problem="call_unreadable")
        if not message_marker:
            return ParsedBlock(problem="call_cut") if cut and recipient else ParsedBlock(text="" if cut else content)
        if recipient:
            return _read_call(clean_name(recipient["name"]), content, cut=cut)
        return ParsedBlock(reasoning=content) if _ANALYSIS.search(heading) else ParsedBlock(text=content)


def _read_call(name: str, content: str, *, cut: bool) -> ParsedBlock:
    if not content.strip():
        return ParsedBlock(problem="call_cut") if cut else ParsedBlock((FoundCall(name, {}),))
    try:
        arguments = parse_object(read_value(content))
    except InvalidJsonError:
        arguments = None
    if arguments is None:
        return ParsedBlock(problem="call_cut" if cut else "call_unreadable")
    return ParsedBlock((FoundCall(name, arguments),))


def _render_call(call: TextCall, index: int) -> str:
    opening = START + "assistant" if index else ""
    header = f"commentary to=functions.{call.name} <|constrain|>json"
    return f"{opening}{CHANNEL}{header}{MESSAGE}{render_spaced_json(call.arguments)}{ENDS[1]}"


_MESSAGE_READER = HarmonyReader()
HARMONY = TextFormat(
    "harmony",
    (Block(CHANNEL, _MESSAGE_READER, ENDS, (START,)), Block(START, _MESSAGE_READER, ENDS, (START,))),
    CallLayout(_render_call, between=""),
    PromptLayout(
        lambda tools: f"# Tools\n\n## functions\n\n{render_namespace(tools)}",
        enclosed_result_writer(f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}", ENDS[0]),
        results_between="",
    ),
    dropped=ENDS,
    reasoning=(),
    thought=(f"{CHANNEL}analysis{MESSAGE}", ENDS[0]),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r"[^\s<|｜=]+", never=(*ENDS, START)),
)
