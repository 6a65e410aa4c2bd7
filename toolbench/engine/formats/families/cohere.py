"""Cohere's Command A and R7B, which give every call an id, and Command R, which writes a list behind `Action:`."""

from collections.abc import Sequence

from toolbench.engine.formats.definition import Block, Format, Holds, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.marked_json import STARTS, Without, between, deep_call, line_array
from toolbench.engine.formats.json_calls import JsonCalls, Shape
from toolbench.engine.formats.values import TextCall, function_of
from toolbench.engine.formats.writing import enclosed, indented_json, spaced_json, tool_list
from toolbench.engine.messages import JsonObject

_READ = JsonCalls(Shape(("tool_name", "name"), ("parameters", "arguments"), ("tool_call_id", "id")))
_PSEUDO = ("directly-answer", "directly_answer")


def counted(call: TextCall, place: int) -> str:
    """An id that is the call's place in the conversation, whatever it was before."""
    return str(place)


def _cohere_call(call: TextCall, place: int) -> str:
    made = call.id or str(place)
    return "    " + spaced_json({"tool_call_id": made, "tool_name": call.name, "parameters": call.arguments})


def _cohere_result(call: TextCall, content: str, place: int) -> str:
    return indented_json({"tool_call_id": call.id, "results": {"0": content}, "is_error": None})


def _offered(tools: Sequence[JsonObject]) -> str:
    listed = ",\n".join(f"    {spaced_json({**function_of(tool), 'responses': None})}" for tool in tools)
    return f"# Available Tools\n```json\n[\n{listed}\n]\n```"


COHERE = Format(
    "cohere",
    (between("<|START_ACTION|>", "<|END_ACTION|>", read=_READ),),
    line_array("<|START_ACTION|>", "<|END_ACTION|>", _cohere_call),
    Prompt(
        _offered,
        _cohere_result,
        "<|START_TOOL_RESULT|>[\n",
        ",\n",
        "\n]<|END_TOOL_RESULT|>",
    ),
    dropped=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|END_ACTION|>", "<|END_OF_TURN_TOKEN|>"),
    reasoning=(("<|START_THINKING|>", "<|END_THINKING|>"),),
    bare=bare_json,
    holds=Holds(PLAIN_NAME, ids=True),
)
_ACTIONS = tuple(
    Block(f"Action:{blank}```json", Without(_PSEUDO, _READ), ("```",), starts=STARTS, values=True) for blank in " \n"
)
COMMAND_R = Format(
    "command_r",
    _ACTIONS,
    line_array("Action:\n```json\n", "```\n", deep_call("tool_name", "parameters")),
    Prompt(tool_list("## Available Tools\n", flat=True), enclosed("<results>\n", "</results>")),
    dropped=("<|END_OF_TURN_TOKEN|>",),
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
