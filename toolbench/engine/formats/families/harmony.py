"""gpt-oss: messages with a channel and a recipient."""

import re
from dataclasses import dataclass

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.json_calls import as_object, clean_name
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.typescript import namespace
from toolbench.engine.formats.values import Known, TextCall
from toolbench.engine.formats.writing import enclosed, spaced_json

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_HEADING_WORDS = 2  # of a message that calls nothing: a role or channel, and what its content is
_RECIPIENT = re.compile(r"to=(?:functions\.)?(?P<name>[^\s<]+)")
_ANALYSIS = re.compile(r"(?:^|<\|channel\|>)\s*analysis")


@dataclass(frozen=True, slots=True)
class HarmonyMessage:
    """Reads one message: a recipient makes it a call, the analysis channel reasoning, anything else is text."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        heading, marked, content = body.partition(MESSAGE)
        recipient = _RECIPIENT.search(heading)
        if not marked and not recipient and len(heading.split()) > _HEADING_WORDS:
            return Reading(problem="call_unreadable")
        if not marked:
            return Reading(problem="call_cut") if cut and recipient else Reading(text="" if cut else content)
        if recipient:
            return _call(clean_name(recipient["name"]), content, cut=cut)
        return Reading(reasoning=content) if _ANALYSIS.search(heading) else Reading(text=content)


def _call(name: str, content: str, *, cut: bool) -> Reading:
    if not content.strip():
        return Reading(problem="call_cut") if cut else Reading((FoundCall(name, {}),))
    try:
        arguments = as_object(read_value(content))
    except BadJson:
        arguments = None
    if arguments is None:
        return Reading(problem="call_cut" if cut else "call_unreadable")
    return Reading((FoundCall(name, arguments),))


def _written(call: TextCall, place: int) -> str:
    opening = START + "assistant" if place else ""
    to = f"commentary to=functions.{call.name} <|constrain|>json"
    return f"{opening}{CHANNEL}{to}{MESSAGE}{spaced_json(call.arguments)}{ENDS[1]}"


_READ = HarmonyMessage()
HARMONY = Format(
    "harmony",
    (Block(CHANNEL, _READ, ENDS, (START,)), Block(START, _READ, ENDS, (START,))),
    Layout(_written, between=""),
    Prompt(
        lambda tools: f"# Tools\n\n## functions\n\n{namespace(tools)}",
        enclosed(f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}", ENDS[0]),
        results_between="",
    ),
    dropped=ENDS,
    reasoning=(),
    thought=(f"{CHANNEL}analysis{MESSAGE}", ENDS[0]),
    bare=bare_json,
    holds=Holds(r"[^\s<|｜=]+", never=(*ENDS, START)),
)
