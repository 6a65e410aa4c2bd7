"""Formats with a known tool's name in a line and its arguments after it: ReAct and Functionary."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.call_writers import (
    enclosed_result_writer,
    named_json_call_writer,
    tool_lines_writer,
    tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.qwen_coder import FUNCTION, FUNCTION_BLOCK, FUNCTION_END
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.typescript import render_namespace

TO_ALL = ">>>all\n"
_STARTS = ("{",)


def _build_line_blocks(before: str, after: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """Return a builder of one block per tool, whose marker is its name between two texts at the start of a line."""

    def build_blocks(names: Sequence[str]) -> tuple[Block, ...]:
        return tuple(_build_line_block(f"{before}{name}{after}", name) for name in names)

    return build_blocks


def _build_anywhere_blocks(before: str, after: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """Return a builder of the blocks of `_build_line_blocks` that may also begin within a line."""
    build_line_blocks = _build_line_blocks(before, after)
    return lambda names: tuple(replace(block, at_line=False) for block in build_line_blocks(names))


def _build_line_block(opener: str, name: str) -> Block:
    return Block(opener, NamedJsonReader(lambda _: (name, "")), starts=_STARTS, values=True, many=False, at_line=True)


REACT = TextFormat(
    "react",
    (),
    CallLayout(named_json_call_writer("Action: ", "\nAction Input: ", "")),
    PromptLayout(tool_list_writer("Tools:\n", flat=True), enclosed_result_writer("Observation: ", ""), role="user"),
    bare=build_bare_json_blocks,
    named=_build_line_blocks("Action: ", "\nAction Input:"),
    holds=RoundTripLimits(PLAIN_NAME),
    native=False,
)
FUNCTIONARY_V31 = TextFormat(
    "functionary_v31",
    (FUNCTION_BLOCK,),
    CallLayout(named_json_call_writer(FUNCTION, ">", FUNCTION_END), between=""),
    PromptLayout(
        tool_lines_writer(
            "These functions can be called:\n",
            f'\n\nTo call one, write {FUNCTION}name>{{"key": "value"}}{FUNCTION_END}.',
            flat=True,
        ),
        enclosed_result_writer("", ""),
    ),
    dropped=("<|eom_id|>", "<|eot_id|>"),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r"[\w.:/-]+", never=(FUNCTION_END, *FUNCTION_BLOCK.enders)),
)
FUNCTIONARY_V32 = TextFormat(
    "functionary_v32",
    (),
    CallLayout(named_json_call_writer(">>>", "\n", ""), between=""),
    PromptLayout(
        lambda tools: (
            f"Answer with >>>recipient, a line break and what is for it; text is for all.\n{render_namespace(tools)}"
        ),
        enclosed_result_writer("", ""),
    ),
    dropped=(TO_ALL, "<|eot_id|>"),
    bare=build_bare_json_blocks,
    named=_build_anywhere_blocks(">>>", "\n"),
    holds=RoundTripLimits(PLAIN_NAME),
)
