"""Families that write a known tool's name on a line and its arguments behind it: ReAct, Functionary."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.families.qwen_coder import FUNCTION, FUNCTION_BLOCK, FUNCTION_END
from toolbench.engine.formats.json_calls import NamedJson
from toolbench.engine.formats.typescript import namespace
from toolbench.engine.formats.writing import enclosed, named_json_call, tool_lines, tool_list

TO_ALL = ">>>all\n"
_STARTS = ("{",)


def _lines(before: str, behind: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """Blocks that open with a name between two texts, at the beginning of a line."""

    def made(names: Sequence[str]) -> tuple[Block, ...]:
        return tuple(_line(f"{before}{name}{behind}", name) for name in names)

    return made


def _anywhere(before: str, behind: str) -> Callable[[Sequence[str]], tuple[Block, ...]]:
    """The same, also behind other text."""
    at_lines = _lines(before, behind)
    return lambda names: tuple(replace(block, at_line=False) for block in at_lines(names))


def _line(opener: str, name: str) -> Block:
    return Block(opener, NamedJson(lambda _: (name, "")), starts=_STARTS, values=True, many=False, at_line=True)


REACT = Format(
    "react",
    (),
    Layout(named_json_call("Action: ", "\nAction Input: ", "")),
    Prompt(tool_list("Tools:\n", flat=True), enclosed("Observation: ", ""), role="user"),
    bare=bare_json,
    named=_lines("Action: ", "\nAction Input:"),
    holds=Holds(PLAIN_NAME),
    native=False,
)
FUNCTIONARY_V31 = Format(
    "functionary_v31",
    (FUNCTION_BLOCK,),
    Layout(named_json_call(FUNCTION, ">", FUNCTION_END), between=""),
    Prompt(
        tool_lines(
            "These functions can be called:\n",
            f'\n\nTo call one, write {FUNCTION}name>{{"key": "value"}}{FUNCTION_END}.',
            flat=True,
        ),
        enclosed("", ""),
    ),
    dropped=("<|eom_id|>", "<|eot_id|>"),
    bare=bare_json,
    holds=Holds(r"[\w.:/-]+", never=(FUNCTION_END, *FUNCTION_BLOCK.enders)),
)
FUNCTIONARY_V32 = Format(
    "functionary_v32",
    (),
    Layout(named_json_call(">>>", "\n", ""), between=""),
    Prompt(
        lambda tools: (
            f"Answer with >>>recipient, a line break and what is for it; text is for all.\n{namespace(tools)}"
        ),
        enclosed("", ""),
    ),
    dropped=(TO_ALL, "<|eot_id|>"),
    bare=bare_json,
    named=_anywhere(">>>", "\n"),
    holds=Holds(PLAIN_NAME),
)
