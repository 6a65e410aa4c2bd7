"""Model families that write calls as JSON, most of them with markers: Phi-4, Granite, xLAM, Jamba and others."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_tool_lines_writer,
    build_tool_list_writer,
    render_indented_json,
    render_spaced_json,
)
from toolbench.engine.formats.families.fenced import build_fenced_json_blocks
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import JSON_BLOCK, NAMED_BLOCK, PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.families.mistral import MISTRAL_BLOCK
from toolbench.engine.formats.json_calls import CallKeys, JsonCallReader, clean_name, parse_object
from toolbench.engine.formats.specification import (
    Block,
    BlockReader,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas, get_function
from toolbench.engine.formats.typescript import render_function_type
from toolbench.engine.types import JsonObject

JSON_STARTS = ("{", "[")
_TOOL_LIST_WRITER = build_tool_list_writer("Tools:\n", "\n", is_flat=True)
_PLAIN_RESULT_WRITER = build_enclosed_result_writer("", "")


@dataclass(frozen=True, slots=True)
class PseudoToolFilter:
    """A reader of JSON calls that drops calls of pseudo tools, with which models say that they call no tool.

    Attributes:
        pseudo_tools: names of the pseudo tools; calls of an offered tool with such a name are kept.
        reader: reads the calls.
    """

    pseudo_tools: tuple[str, ...]
    reader: JsonCallReader = field(default_factory=JsonCallReader)

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        parsed_block = self.reader(body, offered_tools, is_truncated=is_truncated)
        real_calls = tuple(
            call
            for call in parsed_block.calls
            if call.name not in self.pseudo_tools or call.name in offered_tools.schemas
        )
        return ParsedBlock(real_calls, parsed_block.problem_code, parsed_block.deviation_codes)


class NameKeyedCalls(CallKeys):
    """Calls as objects whose only key is the tool's name, with the arguments as its value.

    The attributes of CallKeys are not used.
    """

    def iterate_calls(self, value: object) -> Iterator[ParsedCall | None]:
        """Yield the calls in a JSON value, and None for each item that is no call."""
        for item in value if isinstance(value, list) else [value]:
            pairs = list(item.items()) if isinstance(item, dict) else []
            name, arguments_value = pairs[0] if len(pairs) == 1 else ("", None)
            arguments = parse_object(arguments_value)
            yield ParsedCall(clean_name(name), arguments) if clean_name(name) and arguments is not None else None


def build_marked_block(start_marker: str, *end_markers: str, reader: BlockReader | None = None) -> Block:
    """Return a block of JSON that follows a start marker; one of the end markers may follow the JSON."""
    return Block(
        start_marker,
        reader or JsonCallReader(),
        end_markers,
        (start_marker,),
        body_starts=JSON_STARTS,
        ends_after_values=True,
    )


def _build_format(
    name: str,
    block: Block,
    layout: CallLayout,
    *,
    prompt: PromptLayout | None = None,
    dropped_tokens: tuple[str, ...] = (),
) -> TextFormat:
    """Return a text format with one block. Its dropped tokens are `dropped_tokens` and the block's end markers."""
    return TextFormat(
        name,
        (block,),
        layout,
        prompt or PromptLayout(_TOOL_LIST_WRITER, _PLAIN_RESULT_WRITER),
        dropped_tokens=(*block.end_markers, *dropped_tokens),
        build_bare_blocks=build_bare_json_blocks,
        round_trip_limits=RoundTripLimits(PLAIN_NAME),
    )


def _build_array_layout(prefix: str, suffix: str) -> CallLayout:
    return CallLayout(build_json_call_writer(), f"{prefix}[", ", ", f"]{suffix}")


def build_line_array_layout(prefix: str, suffix: str, write_call: Callable[[TextCall, int], str]) -> CallLayout:
    """Return the layout of an array between two texts, in which each call begins a new line."""
    return CallLayout(write_call, f"{prefix}[\n", ",\n", f"\n]{suffix}")


def build_indented_call_writer(name_key: str, arguments_key: str) -> Callable[[TextCall, int], str]:
    """Return a writer of a call as an indented object over several lines.

    Args:
        name_key: the key of the tool's name.
        arguments_key: the key of the arguments.
    """
    return lambda call, index: render_indented_json({name_key: call.name, arguments_key: call.arguments})


_END_TOKENS = ("<|end|>", "<|end_of_text|>")
_FUNCTOOLS_BLOCK = Block(
    "functools", JsonCallReader(), body_starts=JSON_STARTS, ends_after_values=True, allows_many_values=False
)
FUNCTOOLS = _build_format(
    "functools", _FUNCTOOLS_BLOCK, _build_array_layout("functools", ""), dropped_tokens=_END_TOKENS
)


def _render_available_tools(tools: Sequence[JsonObject]) -> str:
    definitions = "\n\n".join(json.dumps(tool, ensure_ascii=False, indent=4) for tool in tools)
    return f"<|start_of_role|>available_tools<|end_of_role|>\n{definitions}<|end_of_text|>"


GRANITE3 = TextFormat(
    "granite3",
    (
        Block("<|tool_call|>", JsonCallReader(), body_starts=JSON_STARTS, ends_after_values=True),
        JSON_BLOCK,
        NAMED_BLOCK,
    ),
    build_line_array_layout("<|tool_call|>", "", build_indented_call_writer("name", "arguments")),
    PromptLayout(
        _render_available_tools,
        build_enclosed_result_writer("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>"),
    ),
    dropped_tokens=_END_TOKENS,
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
PHI4 = _build_format(
    "phi4",
    build_marked_block("<|tool_call|>", "<|/tool_call|>"),
    _build_array_layout("<|tool_call|>", "<|/tool_call|>"),
    prompt=PromptLayout(build_tool_list_writer("<|tool|>", "<|/tool|>", is_flat=True), _PLAIN_RESULT_WRITER),
    dropped_tokens=_END_TOKENS,
)
GRANITE_20B = _build_format(
    "granite_20b_fc",
    Block(
        "<function_call>",
        PseudoToolFilter(("no_function",)),
        body_starts=JSON_STARTS,
        ends_after_values=True,
        allows_many_values=False,
    ),
    CallLayout(build_json_call_writer(prefix="<function_call> ")),
    prompt=PromptLayout(
        build_tool_lines_writer(
            "<|function_call_library|>\n",
            '\nWhere none of them helps, write <function_call> {"name": "no_function", "arguments": {}}.',
            is_flat=True,
        ),
        build_enclosed_result_writer("<function_response> ", ""),
        results_between="",
    ),
    dropped_tokens=("</function_call>", "<|endoftext|>", *_END_TOKENS),
)
XLAM = TextFormat(
    "xlam",
    (MISTRAL_BLOCK, JSON_BLOCK, NAMED_BLOCK),
    _build_array_layout("", ""),
    PromptLayout(
        build_tool_list_writer(
            "Tools:\n",
            '\n\nTo call some, answer with nothing but an array of them: [{"name": <name>, "arguments": <object>}].\n',
            is_flat=True,
        ),
        _PLAIN_RESULT_WRITER,
    ),
    dropped_tokens=("</tool_call>", "</s>", "<|im_end|>"),
    build_bare_blocks=lambda names: (*build_fenced_json_blocks(names), *build_bare_json_blocks(names)),
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)


def _render_definitions(tools: Sequence[JsonObject]) -> str:
    definitions = "\n\n".join(json.dumps(get_function(tool), ensure_ascii=False, indent=2) for tool in tools)
    return f"<tool_definitions>\n# Tools\n\n## Functions\n\n{definitions}\n</tool_definitions>"


JAMBA = _build_format(
    "jamba",
    PLURAL_BLOCK,
    build_line_array_layout("<tool_calls>", "</tool_calls>", build_json_call_writer(prefix="    ")),
    prompt=PromptLayout(_render_definitions, _PLAIN_RESULT_WRITER),
    dropped_tokens=("<|eom|>",),
)
INTERNLM2 = _build_format(
    "internlm2",
    build_marked_block("<|action_start|><|plugin|>", "<|action_end|>"),
    CallLayout(
        build_json_call_writer(
            arguments_key="parameters", prefix="<|action_start|><|plugin|>\n", suffix="<|action_end|>"
        ),
        between_calls="",
    ),
    prompt=PromptLayout(build_tool_list_writer("", is_flat=True), _PLAIN_RESULT_WRITER),
    dropped_tokens=("<|im_end|>",),
)


def _render_capabilities(tools: Sequence[JsonObject]) -> str:
    return "\n".join(render_function_type(get_function(tool), last_separator="") for tool in tools)


def _render_namespace(tools: Sequence[JsonObject]) -> str:
    types = "".join(f"{render_function_type(get_function(tool), indent='  ')}\n\n" for tool in tools)
    return f"namespace functions {{\n{types}}} // namespace functions"


APERTUS = _build_format(
    "apertus",
    build_marked_block("<|tools_prefix|>", "<|tools_suffix|>", reader=JsonCallReader(NameKeyedCalls())),
    CallLayout(
        lambda call, index: render_spaced_json({call.name: call.arguments}),
        "<|tools_prefix|>[",
        ", ",
        "]<|tools_suffix|>",
    ),
    prompt=PromptLayout(_render_capabilities, _PLAIN_RESULT_WRITER, "[", ", ", "]"),
    dropped_tokens=("<|assistant_end|>",),
)
_GIGACHAT = _build_format(
    "gigachat3",
    build_marked_block("<|function_call|>"),
    CallLayout(build_json_call_writer(prefix="<|function_call|>")),
    prompt=PromptLayout(_render_namespace, _PLAIN_RESULT_WRITER),
    dropped_tokens=(*_END_TOKENS, "<|message_sep|>"),
)
# Also parses the marker of version 3.0.
GIGACHAT3 = replace(_GIGACHAT, blocks=(*_GIGACHAT.blocks, build_marked_block("function call<|role_sep|>")))
NEMOTRON = _build_format(
    "nemotron",
    build_marked_block("<TOOLCALL>", "</TOOLCALL>"),
    _build_array_layout("<TOOLCALL>", "</TOOLCALL>"),
    prompt=PromptLayout(
        build_tool_list_writer(
            "These tools can be called:\n<AVAILABLE_TOOLS>",
            '</AVAILABLE_TOOLS>\n\nTo call some, write:\n<TOOLCALL>[{"name": <name>, "arguments": <object>}]'
            "</TOOLCALL>",
            is_flat=True,
        ),
        _PLAIN_RESULT_WRITER,
        "<TOOL_RESPONSE>[",
        ", ",
        "]</TOOL_RESPONSE>",
    ),
    dropped_tokens=("<SPECIAL_12>",),
)
LM_STUDIO = _build_format(
    "lm_studio",
    build_marked_block("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    CallLayout(build_json_call_writer(prefix="[TOOL_REQUEST]", suffix="[END_TOOL_REQUEST]")),
)
MARKED_JSON_FORMATS = (
    GRANITE3,
    PHI4,
    FUNCTOOLS,
    GRANITE_20B,
    XLAM,
    JAMBA,
    INTERNLM2,
    APERTUS,
    GIGACHAT3,
    NEMOTRON,
    LM_STUDIO,
)
