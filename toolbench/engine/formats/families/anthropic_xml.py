"""Anthropic's calls in text from before its tools API, in the older and the newer form."""

import re
from dataclasses import dataclass

from toolbench.engine.formats.call_writers import enclosed_result_writer, tagged_call_writer, tool_lines_writer
from toolbench.engine.formats.families.minimax import INVOKE_END, INVOKE_LIMITS, build_invoke_block, build_invoke_layout
from toolbench.engine.formats.json_calls import clean_name
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    FoundCall,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.tagged_calls import convert_by_key
from toolbench.engine.formats.types import ToolSchemas

OPENER, CLOSER = "<function_calls>", "</function_calls>"
_TAG = re.compile(r"\s*<(?P<key>[^<>/\s]+)>")
_GUARD = ("<parameters>", "</parameters>")


@dataclass(frozen=True, slots=True)
class NamedTagReader:
    """Parses a name tag and one tag for each parameter, named like it."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        problem = ParsedBlock(problem="call_cut" if cut else "call_unreadable")
        name, named, rest = body.partition("<tool_name>")[2].partition("</tool_name>")
        name = clean_name(name)
        before, opened, written = rest.partition(_GUARD[0])
        values = _read_tags(written)
        lost = not named or (before.strip() and not opened)
        if cut or lost or not name or values is None:
            return problem
        notes: set[str] = set()
        return ParsedBlock((FoundCall(name, convert_by_key(values, name, known, notes)),), notes=tuple(notes))


def _read_tags(text: str) -> list[tuple[str, str]] | None:
    """Return the values with their tags, up to the end of the parameters; None if a tag has no end."""
    values: list[tuple[str, str]] = []
    at = 0
    while found := _TAG.match(text, at):
        closer = f"</{found['key']}>"
        end = text.find(closer, found.end())
        if end < 0:
            return None
        values.append((found["key"], text[found.end() : end]))
        at = end + len(closer)
    rest = text[at:].strip()
    return values if not rest or rest.startswith(_GUARD[1]) else None


_PROMPT = PromptLayout(
    tool_lines_writer(
        "In this environment these tools can be called:\n<tools>\n", f"\n</tools>\n\nWrap calls in {OPENER}."
    ),
    enclosed_result_writer("<result>\n<tool_name>{name}</tool_name>\n<stdout>\n", "\n</stdout>\n</result>"),
    results_before="<function_results>\n",
    results_after="\n</function_results>",
    role="user",
)
_OLDER_BLOCK = Block("<invoke>", NamedTagReader(), (INVOKE_END,), (CLOSER, "<invoke>"), guard=_GUARD)
_BLOCKS = (_OLDER_BLOCK, build_invoke_block(CLOSER))
WRAPPER = Block(OPENER, NamedTagReader(), starts=("<invoke",), wrapper=True)

ANTHROPIC_XML = TextFormat(
    "anthropic_xml",
    (WRAPPER, *_BLOCKS),
    CallLayout(
        tagged_call_writer(
            "<invoke>\n<tool_name>{name}</tool_name>\n<parameters>\n",
            "<{key}>",
            "</{key}>\n",
            f"</parameters>\n{INVOKE_END}",
        ),
        f"{OPENER}\n",
        "\n",
        f"\n{CLOSER}",
    ),
    _PROMPT,
    dropped=(CLOSER,),
    holds=RoundTripLimits(INVOKE_LIMITS.name, r"[^<>/\s]+", (*INVOKE_LIMITS.never, "</"), schema=True),
)
ANTHROPIC_INVOKE = TextFormat(
    "anthropic_invoke",
    (WRAPPER, *_BLOCKS),
    build_invoke_layout(f"{OPENER}\n", f"\n{CLOSER}"),
    _PROMPT,
    dropped=(CLOSER,),
    holds=INVOKE_LIMITS,
)
