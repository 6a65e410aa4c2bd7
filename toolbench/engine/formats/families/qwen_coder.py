"""Qwen3-Coder, Qwen 3.5, Nemotron 3, MiMo, Step 3.5 and Seed-OSS: a function tag with parameter tags."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import CLOSER, JSON_BLOCK, NAMED_BLOCK, OPENER, PLAIN_NAME
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines
from toolbench.engine.messages import JsonObject

FUNCTION, FUNCTION_END = "<function=", "</function>"
VALUE, VALUE_END = "<parameter=", "</parameter>"
READ = Tagged(
    re.compile(r"\s*[\"']?(?P<name>[\w.:/-]+)[\"']?\s*>?"),
    re.compile(r"<parameter=(?P<key>[^>\n]{1,256})>"),
    VALUE_END,
    FUNCTION_END,
    lines=True,
)
_SEED_OPENER, _SEED_CLOSER = "<seed:tool_call>", "</seed:tool_call>"
FUNCTION_BLOCK = Block(
    FUNCTION, READ, (FUNCTION_END,), (CLOSER, _SEED_CLOSER, OPENER, _SEED_OPENER, FUNCTION), guard=(VALUE, VALUE_END)
)
_WRAPPER = Block(OPENER, READ, starts=(FUNCTION,), wrapper=True)
_HOLDS = Holds(PLAIN_NAME, r"[^\s<>=]+", (VALUE, VALUE_END, FUNCTION_END, OPENER, CLOSER, FUNCTION), schema=True)


def _tools(opener: str, closer: str, line: str) -> Callable[[Sequence[JsonObject]], str]:
    return tool_lines(
        "# Tools\n\nThese functions can be called:\n<tools>\n",
        f"\n</tools>\n\nTo call one, write:\n{opener}\n{FUNCTION}name>\n{VALUE}key>{line}value{line}{VALUE_END}\n"
        f"{FUNCTION_END}\n{closer}",
    )


def _written(opener: str, closer: str, line: str) -> Layout:
    before = f"{opener}\n{FUNCTION}{{name}}>\n"
    key, value_end = f"{VALUE}{{key}}>{line}", f"{line}{VALUE_END}\n"
    return Layout(tagged_call(before, key, value_end, f"{FUNCTION_END}\n{closer}"))


QWEN3_CODER = Format(
    "qwen3_coder",
    (_WRAPPER, JSON_BLOCK, NAMED_BLOCK, FUNCTION_BLOCK),
    _written(OPENER, CLOSER, "\n"),
    Prompt(
        _tools(OPENER, CLOSER, "\n"),
        enclosed("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=(CLOSER, "<|im_end|>"),
    bare=bare_json,
    holds=_HOLDS,
)
SEED_OSS = Format(
    "seed_oss",
    (replace(FUNCTION_BLOCK, read=replace(READ, lines=False)),),
    _written(_SEED_OPENER, _SEED_CLOSER, ""),
    Prompt(_tools(_SEED_OPENER, _SEED_CLOSER, ""), enclosed("", "")),
    dropped=(_SEED_OPENER, _SEED_CLOSER, "<seed:eos>"),
    reasoning=(("<seed:think>", "</seed:think>"),),
    bare=bare_json,
    holds=Holds(_HOLDS.name, _HOLDS.key, (*_HOLDS.never, _SEED_OPENER, _SEED_CLOSER), schema=True),
)
