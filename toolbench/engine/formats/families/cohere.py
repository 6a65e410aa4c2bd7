"""Cohere's Command A and R7B (calls with ids), and Command R (a list of calls after `Action:`)."""

from collections.abc import Sequence

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tool_list_writer,
    render_indented_json,
    render_spaced_json,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.marked_json import (
    JSON_STARTS,
    PseudoToolFilter,
    build_indented_call_writer,
    build_line_array_layout,
    build_marked_block,
)
from toolbench.engine.formats.json_calls import CallKeys, JsonCallReader
from toolbench.engine.formats.specification import Block, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.types import TextCall, get_function
from toolbench.engine.types import JsonObject

_CALL_READER = JsonCallReader(CallKeys(("tool_name", "name"), ("parameters", "arguments"), ("tool_call_id", "id")))
# Tools that are not offered; Command R calls them to say that it calls no tool.
_PSEUDO_TOOLS = ("directly-answer", "directly_answer")


def build_position_id(call: TextCall, index: int) -> str:
    """Return the call's position in the conversation, from 0, as its id."""
    return str(index)


def _render_call(call: TextCall, index: int) -> str:
    call_id = call.id or str(index)
    return "    " + render_spaced_json({"tool_call_id": call_id, "tool_name": call.name, "parameters": call.arguments})


def _render_result(call: TextCall, content: str, index: int) -> str:
    return render_indented_json({"tool_call_id": call.id, "results": {"0": content}, "is_error": None})


def _render_tools(tools: Sequence[JsonObject]) -> str:
    lines = ",\n".join(f"    {render_spaced_json({**get_function(tool), 'responses': None})}" for tool in tools)
    return f"# Available Tools\n```json\n[\n{lines}\n]\n```"


COHERE = TextFormat(
    "cohere",
    (build_marked_block("<|START_ACTION|>", "<|END_ACTION|>", reader=_CALL_READER),),
    build_line_array_layout("<|START_ACTION|>", "<|END_ACTION|>", _render_call),
    PromptLayout(
        _render_tools,
        _render_result,
        "<|START_TOOL_RESULT|>[\n",
        ",\n",
        "\n]<|END_TOOL_RESULT|>",
    ),
    dropped_tokens=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|END_ACTION|>", "<|END_OF_TURN_TOKEN|>"),
    reasoning_markers=(("<|START_THINKING|>", "<|END_THINKING|>"),),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME, keeps_ids=True),
)
_ACTION_BLOCKS = tuple(
    Block(
        f"Action:{separator}```json",
        PseudoToolFilter(_PSEUDO_TOOLS, _CALL_READER),
        ("```",),
        body_starts=JSON_STARTS,
        ends_after_values=True,
    )
    for separator in " \n"
)
COMMAND_R = TextFormat(
    "command_r",
    _ACTION_BLOCKS,
    build_line_array_layout("Action:\n```json\n", "```\n", build_indented_call_writer("tool_name", "parameters")),
    PromptLayout(
        build_tool_list_writer("## Available Tools\n", is_flat=True),
        build_enclosed_result_writer("<results>\n", "</results>"),
    ),
    dropped_tokens=("<|END_OF_TURN_TOKEN|>",),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
