"""Anthropic's text formats from before its tools API: `<tool_name>` tags, later `<invoke name=…>`."""

import re
from dataclasses import dataclass

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tagged_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.minimax import INVOKE_END, INVOKE_LIMITS, build_invoke_block, build_invoke_layout
from toolbench.engine.formats.json_calls import clean_name
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
from toolbench.engine.formats.tagged_calls import convert_by_key
from toolbench.engine.formats.types import ToolSchemas

CALLS_START, CALLS_END = "<function_calls>", "</function_calls>"
_TAG = re.compile(r"\s*<(?P<key>[^<>/\s]+)>")
_PARAMETERS_TAGS = ("<parameters>", "</parameters>")


@dataclass(frozen=True, slots=True)
class NamedTagReader:
    """A reader of a `<tool_name>` tag and of one tag for each parameter, named after the parameter."""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        name, name_end, after_name = body.partition("<tool_name>")[2].partition("</tool_name>")
        name = clean_name(name)
        text_before_parameters, parameters_start, parameters = after_name.partition(_PARAMETERS_TAGS[0])
        values = _read_tags(parameters)
        is_tag_missing = not name_end or (text_before_parameters.strip() and not parameters_start)
        if is_truncated or is_tag_missing or not name or values is None:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        deviation_codes: set[str] = set()
        call = ParsedCall(name, convert_by_key(values, name, offered_tools, deviation_codes))
        return ParsedBlock((call,), deviation_codes=tuple(deviation_codes))


def _read_tags(text: str) -> list[tuple[str, str]] | None:
    """Return pairs of key and value up to the end of the parameters.

    The result is None if a tag has no end, or if text outside of tags stands before the end of the parameters.
    """
    values: list[tuple[str, str]] = []
    index = 0
    while tag := _TAG.match(text, index):
        end_marker = f"</{tag['key']}>"
        end = text.find(end_marker, tag.end())
        if end < 0:
            return None
        values.append((tag["key"], text[tag.end() : end]))
        index = end + len(end_marker)
    remaining = text[index:].strip()
    return values if not remaining or remaining.startswith(_PARAMETERS_TAGS[1]) else None


_PROMPT = PromptLayout(
    build_tool_lines_writer(
        "In this environment these tools can be called:\n<tools>\n", f"\n</tools>\n\nWrap calls in {CALLS_START}."
    ),
    build_enclosed_result_writer("<result>\n<tool_name>{name}</tool_name>\n<stdout>\n", "\n</stdout>\n</result>"),
    results_before="<function_results>\n",
    results_after="\n</function_results>",
)
_OLDER_BLOCK = Block(
    "<invoke>", NamedTagReader(), (INVOKE_END,), (CALLS_END, "<invoke>"), value_markers=_PARAMETERS_TAGS
)
_BLOCKS = (_OLDER_BLOCK, build_invoke_block(CALLS_END))
_WRAPPER = Block(CALLS_START, NamedTagReader(), body_starts=("<invoke",), is_wrapper=True)

ANTHROPIC_XML = TextFormat(
    "anthropic_xml",
    (_WRAPPER, *_BLOCKS),
    CallLayout(
        build_tagged_call_writer(
            "<invoke>\n<tool_name>{name}</tool_name>\n<parameters>\n",
            "<{key}>",
            "</{key}>\n",
            f"</parameters>\n{INVOKE_END}",
        ),
        f"{CALLS_START}\n",
        "\n",
        f"\n{CALLS_END}",
    ),
    _PROMPT,
    dropped_tokens=(CALLS_END,),
    round_trip_limits=RoundTripLimits(
        INVOKE_LIMITS.name_pattern, r"[^<>/\s]+", (*INVOKE_LIMITS.forbidden_texts, "</"), needs_schema=True
    ),
)
ANTHROPIC_INVOKE = TextFormat(
    "anthropic_invoke",
    (_WRAPPER, *_BLOCKS),
    build_invoke_layout(f"{CALLS_START}\n", f"\n{CALLS_END}"),
    _PROMPT,
    dropped_tokens=(CALLS_END,),
    round_trip_limits=INVOKE_LIMITS,
)
