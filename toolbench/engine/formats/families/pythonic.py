"""Python calls: Llama 3.2 and 4, LFM2, OLMo 3, ToolACE."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_result_writer,
    build_tool_lines_writer,
    build_tool_list_writer,
    render_python_call,
    render_spaced_json,
)
from toolbench.engine.formats.python_calls import PythonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

_NAME, _KEY = r"[A-Za-z_][\w.]*", r"[A-Za-z_]\w*"
_INSTRUCTION = "answer with a list of calls, [name(key=value, ...), ...], and nothing else.\n"
LLAMA4_END_MARKERS, LLAMA4_TURN_END_MARKERS = ("<|python_end|>",), ("<|eot|>", "<|eom|>")


def build_bare_list_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for a list of calls that begins a line and starts with a call of an offered tool."""
    body_starts = tuple(f"{name}(" for name in names)
    return (
        Block(
            "[",
            PythonCallReader(),
            body_starts=body_starts,
            ends_after_values=True,
            allows_many_values=False,
            is_bare=True,
            has_start_marker_in_body=True,
            must_begin_line=True,
        ),
    )


def build_bare_line_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for each offered tool: a call without a list, on a line of its own."""
    return tuple(
        Block(
            f"{name}(",
            PythonCallReader(),
            ("\n",),
            is_bare=True,
            has_start_marker_in_body=True,
            must_begin_line=True,
        )
        for name in names
    )


PYTHONIC = TextFormat(
    "pythonic",
    (),
    CallLayout(render_python_call, "[", ", ", "]"),
    PromptLayout(
        build_tool_list_writer("Functions:\n", f"\n\nTo call some, {_INSTRUCTION}", is_flat=True),
        build_json_result_writer(output="content"),
    ),
    dropped_tokens=("<|eot_id|>", "<|eom_id|>"),
    build_bare_blocks=build_bare_list_blocks,
    round_trip_limits=RoundTripLimits(_NAME, _KEY),
)
LLAMA4 = TextFormat(
    "llama4",
    (Block("<|python_start|>", PythonCallReader(), LLAMA4_END_MARKERS, LLAMA4_TURN_END_MARKERS),),
    CallLayout(render_python_call, "<|python_start|>[", ", ", "]<|python_end|>"),
    replace(PYTHONIC.prompt, write_result=lambda call, content, index: render_spaced_json(content)),
    dropped_tokens=(*LLAMA4_END_MARKERS, *LLAMA4_TURN_END_MARKERS),
    build_bare_blocks=build_bare_list_blocks,
    round_trip_limits=RoundTripLimits(_NAME, _KEY, (*LLAMA4_END_MARKERS, *LLAMA4_TURN_END_MARKERS)),
)
LFM2 = TextFormat(
    "lfm2",
    (Block("<|tool_call_start|>", PythonCallReader(), ("<|tool_call_end|>",)),),
    CallLayout(render_python_call, "<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
    PromptLayout(
        build_tool_list_writer("List of tools: <|tool_list_start|>", "<|tool_list_end|>", is_flat=True),
        build_enclosed_result_writer("<|tool_response_start|>", "<|tool_response_end|>"),
    ),
    dropped_tokens=("<|im_end|>",),
    build_bare_blocks=build_bare_list_blocks,
    round_trip_limits=RoundTripLimits(_NAME, _KEY, ("<|tool_call_end|>",)),
)
OLMO3 = TextFormat(
    "olmo3",
    (Block("<function_calls>", PythonCallReader(), ("</function_calls>",)),),
    CallLayout(render_python_call, "<function_calls>", "\n", "</function_calls>"),
    PromptLayout(
        build_tool_lines_writer("You have these functions: <functions>", "</functions>"),
        build_enclosed_result_writer("", ""),
    ),
    dropped_tokens=("<|im_end|>",),
    build_bare_blocks=lambda names: (*build_bare_list_blocks(names), *build_bare_line_blocks(names)),
    round_trip_limits=RoundTripLimits(_NAME, _KEY, ("</function_calls>",)),
)
