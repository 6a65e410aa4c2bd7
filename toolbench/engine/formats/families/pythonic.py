"""Python calls: Llama 3.2 and 4, LFM2, OLMo 3, ToolACE."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.python_calls import PythonCalls
from toolbench.engine.formats.writing import as_json, enclosed, python_call, spaced_json, tool_lines, tool_list

_NAME, _KEY = r"[A-Za-z_][\w.]*", r"[A-Za-z_]\w*"
_HOW = "answer with a list of calls, [name(key=value, ...), ...], and nothing else.\n"
LLAMA4_ENDS, LLAMA4_TURN_ENDS = ("<|python_end|>",), ("<|eot|>", "<|eom|>")


def bare_list(names: Sequence[str]) -> tuple[Block, ...]:
    """A list of calls at the beginning of a line."""
    starts = tuple(f"{name}(" for name in names)
    return (Block("[", PythonCalls(), starts=starts, values=True, many=False, bare=True, inner=True, at_line=True),)


def bare_lines(names: Sequence[str]) -> tuple[Block, ...]:
    """Calls without a list, each on a line of its own."""
    return tuple(
        Block(f"{name}(", PythonCalls(), ("\n",), guard=None, bare=True, inner=True, at_line=True) for name in names
    )


PYTHONIC = Format(
    "pythonic",
    (),
    Layout(python_call, "[", ", ", "]"),
    Prompt(
        tool_list("Functions:\n", f"\n\nTo call some, {_HOW}", flat=True), as_json(output="content"), role="ipython"
    ),
    dropped=("<|eot_id|>", "<|eom_id|>"),
    bare=bare_list,
    holds=Holds(_NAME, _KEY),
)
LLAMA4 = Format(
    "llama4",
    (Block("<|python_start|>", PythonCalls(), LLAMA4_ENDS, LLAMA4_TURN_ENDS),),
    Layout(python_call, "<|python_start|>[", ", ", "]<|python_end|>"),
    replace(PYTHONIC.prompt, result=lambda call, content, place: spaced_json(content)),
    dropped=(*LLAMA4_ENDS, *LLAMA4_TURN_ENDS),
    bare=bare_list,
    holds=Holds(_NAME, _KEY, (*LLAMA4_ENDS, *LLAMA4_TURN_ENDS)),
)
LFM2 = Format(
    "lfm2",
    (Block("<|tool_call_start|>", PythonCalls(), ("<|tool_call_end|>",)),),
    Layout(python_call, "<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
    Prompt(
        tool_list("List of tools: <|tool_list_start|>", "<|tool_list_end|>", flat=True),
        enclosed("<|tool_response_start|>", "<|tool_response_end|>"),
    ),
    dropped=("<|im_end|>",),
    bare=bare_list,
    holds=Holds(_NAME, _KEY, ("<|tool_call_end|>",)),
)
OLMO3 = Format(
    "olmo3",
    (Block("<function_calls>", PythonCalls(), ("</function_calls>",)),),
    Layout(python_call, "<function_calls>", "\n", "</function_calls>"),
    Prompt(tool_lines("You have these functions: <functions>", "</functions>"), enclosed("", ""), role="environment"),
    dropped=("<|im_end|>",),
    bare=lambda names: (*bare_list(names), *bare_lines(names)),
    holds=Holds(_NAME, _KEY, ("</function_calls>",)),
)
