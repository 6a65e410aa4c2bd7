"""Python calls: Llama 3.2 and 4, LFM2, OLMo 3, ToolACE."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    enclosed_result_writer,
    json_result_writer,
    render_python_call,
    render_spaced_json,
    tool_lines_writer,
    tool_list_writer,
)
from toolbench.engine.formats.python_calls import PythonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

_NAME, _KEY = r"[A-Za-z_][\w.]*", r"[A-Za-z_]\w*"
_INSTRUCTION = "answer with a list of calls, [name(key=value, ...), ...], and nothing else.\n"
LLAMA4_ENDS, LLAMA4_TURN_ENDS = ("<|python_end|>",), ("<|eot|>", "<|eom|>")


def build_bare_list_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for a list of calls of known tools at the beginning of a line."""
    starts = tuple(f"{name}(" for name in names)
    return (
        Block("[", PythonCallReader(), starts=starts, values=True, many=False, bare=True, inner=True, at_line=True),
    )


def build_bare_line_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for each known tool: a call without a list, on a line of its own."""
    return tuple(
        Block(f"{name}(", PythonCallReader(), ("\n",), guard=None, bare=True, inner=True, at_line=True)
        for name in names
    )


PYTHONIC = TextFormat(
    "pythonic",
    (),
    CallLayout(render_python_call, "[", ", ", "]"),
    PromptLayout(
        tool_list_writer("Functions:\n", f"\n\nTo call some, {_INSTRUCTION}", flat=True),
        json_result_writer(output="content"),
        role="ipython",
    ),
    dropped=("<|eot_id|>", "<|eom_id|>"),
    bare=build_bare_list_blocks,
    holds=RoundTripLimits(_NAME, _KEY),
)
LLAMA4 = TextFormat(
    "llama4",
    (Block("<|python_start|>", PythonCallReader(), LLAMA4_ENDS, LLAMA4_TURN_ENDS),),
    CallLayout(render_python_call, "<|python_start|>[", ", ", "]<|python_end|>"),
    replace(PYTHONIC.prompt, result=lambda call, content, index: render_spaced_json(content)),
    dropped=(*LLAMA4_ENDS, *LLAMA4_TURN_ENDS),
    bare=build_bare_list_blocks,
    holds=RoundTripLimits(_NAME, _KEY, (*LLAMA4_ENDS, *LLAMA4_TURN_ENDS)),
)
LFM2 = TextFormat(
    "lfm2",
    (Block("<|tool_call_start|>", PythonCallReader(), ("<|tool_call_end|>",)),),
    CallLayout(render_python_call, "<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
    PromptLayout(
        tool_list_writer("List of tools: <|tool_list_start|>", "<|tool_list_end|>", flat=True),
        enclosed_result_writer("<|tool_response_start|>", "<|tool_response_end|>"),
    ),
    dropped=("<|im_end|>",),
    bare=build_bare_list_blocks,
    holds=RoundTripLimits(_NAME, _KEY, ("<|tool_call_end|>",)),
)
OLMO3 = TextFormat(
    "olmo3",
    (Block("<function_calls>", PythonCallReader(), ("</function_calls>",)),),
    CallLayout(render_python_call, "<function_calls>", "\n", "</function_calls>"),
    PromptLayout(
        tool_lines_writer("You have these functions: <functions>", "</functions>"),
        enclosed_result_writer("", ""),
        role="environment",
    ),
    dropped=("<|im_end|>",),
    bare=lambda names: (*build_bare_list_blocks(names), *build_bare_line_blocks(names)),
    holds=RoundTripLimits(_NAME, _KEY, ("</function_calls>",)),
)
