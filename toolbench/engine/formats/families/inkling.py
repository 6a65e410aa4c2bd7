"""Inkling: messages with one type of content each.

A call has the tool's name before its marker and in its JSON.
"""

from collections.abc import Sequence

from toolbench.engine.formats.call_writers import build_enclosed_result_writer, render_canonical_json
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.marked_json import build_marked_block
from toolbench.engine.formats.json_calls import CallKeys, JsonCallReader
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas, get_function
from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

_CALL_MARKER, _REASONING_MARKER, _MESSAGE_END = (
    "<|content_invoke_tool_json|>",
    "<|content_thinking|>",
    "<|end_message|>",
)
_CALL_READER = JsonCallReader(CallKeys(arguments_keys=("args", "arguments")))


def _render_call(call: TextCall, index: int) -> str:
    return call.name + _CALL_MARKER + write_json({"name": call.name, "args": call.arguments}) + _MESSAGE_END


def _render_tools(tools: Sequence[JsonObject]) -> str:
    functions_json = render_canonical_json([{**get_function(tool), "type": "function"} for tool in tools])
    return f"<|message_system|>tool_declare<|content_xml|>{functions_json}{_MESSAGE_END}"


def _build_named_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    return tuple(build_marked_block(f"{name}{_CALL_MARKER}", _MESSAGE_END, reader=_CALL_READER) for name in names)


def _read_reasoning(body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
    return ParsedBlock(reasoning=body)


INKLING = TextFormat(
    "inkling",
    (
        build_marked_block(_CALL_MARKER, _MESSAGE_END, reader=_CALL_READER),
        Block(_REASONING_MARKER, _read_reasoning, (_MESSAGE_END,)),
    ),
    CallLayout(_render_call, between_calls="<|message_model|>"),
    PromptLayout(
        _render_tools,
        build_enclosed_result_writer("<|message_tool|>{name}<|content_text|>", _MESSAGE_END),
        results_between="",
    ),
    dropped_tokens=(_MESSAGE_END, "<|message_model|>", "<|content_text|>", "<|content_model_end_sampling|>"),
    reasoning_markers=(),
    written_reasoning_markers=(_REASONING_MARKER, _MESSAGE_END),
    build_bare_blocks=build_bare_json_blocks,
    build_named_blocks=_build_named_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
