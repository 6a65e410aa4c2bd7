"""Anthropic's text formats from before its tools API: `<tool_name>` tags (older) and `<invoke name=…>` (newer)."""

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
    """A reader of a `<tool_name>` tag and one tag for each parameter, with the parameter's name as its own."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        problem = ParsedBlock(problem="call_cut" if cut else "call_unreadable")
        name, name_end, after_name = body.partition("<tool_name>")[2].partition("</tool_name>")
        name = clean_name(name)
        before, parameters_start, parameters = after_name.partition(_GUARD[0])
        values = _read_tags(parameters)
        is_tag_missing = not name_end or (before.strip() and not parameters_start)
        if cut or is_tag_missing or not name or values is None:
            return problem
        notes: set[str] = set()
        return ParsedBlock((FoundCall(name, convert_by_key(values, name, known, notes)),), notes=tuple(notes))


def _read_tags(text: str) -> list[tuple[str, str]] | None:
    """Return pairs of key and value up to the end of the parameters; None if a tag has no end or other text follows."""
    values: list[tuple[str, str]] = []
    index = 0
    while tag := _TAG.match(text, index):
        closer = f"</{tag['key']}>"
        end = text.find(closer, tag.end())
        if end < 0:
            return None
        values.append((tag["key"], text[tag.end() : end]))
        index = end + len(closer)
    remaining = text[index:].strip()
    return values if not remaining or remaining.startswith(_GUARD[1]) else None


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
