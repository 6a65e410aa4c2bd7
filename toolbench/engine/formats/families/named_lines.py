"""ReAct and Functionary: a tool's name between two texts, then JSON arguments."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_named_json_call_writer,
    build_tool_lines_writer,
    build_tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.qwen_coder import FUNCTION_BLOCK, FUNCTION_END, FUNCTION_START
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.typescript import render_namespace

ALL_RECIPIENTS_LINE = ">>>all\n"
_OBJECT_START = ("{",)


def _build_line_block_builder(name_prefix: str, name_suffix: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """Return a function that builds a block for each tool: its name between two texts, at the beginning of a line."""

    def build_blocks(names: Sequence[str]) -> tuple[Block, ...]:
        return tuple(_build_line_block(f"{name_prefix}{name}{name_suffix}", name) for name in names)

    return build_blocks


def _build_anywhere_block_builder(name_prefix: str, name_suffix: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """Return a function that builds a block for each tool: its name between two texts, anywhere in the text."""
    build_line_blocks = _build_line_block_builder(name_prefix, name_suffix)
    return lambda names: tuple(replace(block, must_begin_line=False) for block in build_line_blocks(names))


def _build_line_block(start_marker: str, name: str) -> Block:
    return Block(
        start_marker,
        NamedJsonReader(lambda _: (name, "")),
        body_starts=_OBJECT_START,
        ends_after_values=True,
        allows_many_values=False,
        must_begin_line=True,
    )


REACT = TextFormat(
    "react",
    (),
    CallLayout(build_named_json_call_writer("Action: ", "\nAction Input: ", "")),
    PromptLayout(
        build_tool_list_writer("Tools:\n", is_flat=True),
        build_enclosed_result_writer("Observation: ", ""),
    ),
    build_bare_blocks=build_bare_json_blocks,
    build_named_blocks=_build_line_block_builder("Action: ", "\nAction Input:"),
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
    is_native=False,
)
FUNCTIONARY_V31 = TextFormat(
    "functionary_v31",
    (FUNCTION_BLOCK,),
    CallLayout(build_named_json_call_writer(FUNCTION_START, ">", FUNCTION_END), between_calls=""),
    PromptLayout(
        build_tool_lines_writer(
            "These functions can be called:\n",
            f'\n\nTo call one, write {FUNCTION_START}name>{{"key": "value"}}{FUNCTION_END}.',
            is_flat=True,
        ),
        build_enclosed_result_writer("", ""),
    ),
    dropped_tokens=("<|eom_id|>", "<|eot_id|>"),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r"[\w.:/-]+", forbidden_texts=(FUNCTION_END, *FUNCTION_BLOCK.next_markers)),
)
FUNCTIONARY_V32 = TextFormat(
    "functionary_v32",
    (),
    CallLayout(build_named_json_call_writer(">>>", "\n", ""), between_calls=""),
    PromptLayout(
        lambda tools: (
            f"Answer with >>>recipient, a line break and what is for it; text is for all.\n{render_namespace(tools)}"
        ),
        build_enclosed_result_writer("", ""),
    ),
    dropped_tokens=(ALL_RECIPIENTS_LINE, "<|eot_id|>"),
    build_bare_blocks=build_bare_json_blocks,
    build_named_blocks=_build_anywhere_block_builder(">>>", "\n"),
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
