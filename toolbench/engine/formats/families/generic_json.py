"""Calls as plain JSON, with no marker of their own, in the shapes seen in the wild."""

from collections.abc import Sequence

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.json_calls import JsonCalls, Shape
from toolbench.engine.formats.writing import enclosed, json_call, tool_lines

NAME_KEYS = ("name", "tool", "function", "action", "tool_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
WRAPPERS = ("function", "function_call", "tool_call", "tool_calls")
ANY_SHAPE = Shape(NAME_KEYS, ARGUMENT_KEYS, ("id", "tool_call_id"), WRAPPERS)


def bare_json(names: Sequence[str]) -> tuple[Block, ...]:
    """An object, or an array of objects, anywhere in the text."""
    read = JsonCalls(ANY_SHAPE)
    return (
        Block("{", read, starts=('"', "'", '{"'), values=True, many=False, bare=True, inner=True),
        Block("[", read, starts=("{",), values=True, many=False, bare=True, inner=True),
    )


GENERIC_JSON = Format(
    "json",
    (),
    Layout(json_call(arguments="parameters")),
    Prompt(
        tool_lines(
            "Functions:\n",
            '\n\nTo call one, answer with nothing but {"type": "function", "name": <name>, "parameters": <object>}.',
        ),
        enclosed("[tool_result name={name} id={id}]\n", ""),
        role="user",
    ),
    bare=bare_json,
    holds=Holds(name=r"[^\s<|｜]+"),
    native=False,
)
