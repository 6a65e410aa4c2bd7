"""Inkling: messages of one kind of content each; the tool's name stands before the content's mark, and again in it."""

from collections.abc import Sequence

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.marked_json import between
from toolbench.engine.formats.json_calls import JsonCalls, Shape
from toolbench.engine.formats.values import Known, TextCall, function_of
from toolbench.engine.formats.writing import canonical_json, enclosed
from toolbench.engine.json_text import write_json
from toolbench.engine.messages import JsonObject

_MARK, _THOUGHT, _END = "<|content_invoke_tool_json|>", "<|content_thinking|>", "<|end_message|>"
_READ = JsonCalls(Shape(arguments=("args", "arguments")))


def _call(call: TextCall, place: int) -> str:
    return call.name + _MARK + write_json({"name": call.name, "args": call.arguments}) + _END


def _tools(tools: Sequence[JsonObject]) -> str:
    listed = canonical_json([{**function_of(tool), "type": "function"} for tool in tools])
    return f"<|message_system|>tool_declare<|content_xml|>{listed}{_END}"


def _named(names: Sequence[str]) -> tuple[Block, ...]:
    return tuple(between(f"{name}{_MARK}", _END, read=_READ) for name in names)


def _thought(body: str, known: Known, *, cut: bool) -> Reading:
    return Reading(reasoning=body)


INKLING = Format(
    "inkling",
    (between(_MARK, _END, read=_READ), Block(_THOUGHT, _thought, (_END,))),
    Layout(_call, between="<|message_model|>"),
    Prompt(
        _tools,
        enclosed("<|message_tool|>{name}<|content_text|>", _END),
        results_between="",
    ),
    dropped=(_END, "<|message_model|>", "<|content_text|>", "<|content_model_end_sampling|>"),
    reasoning=(),
    thought=(_THOUGHT, _END),
    bare=bare_json,
    named=_named,
    holds=Holds(PLAIN_NAME),
)
