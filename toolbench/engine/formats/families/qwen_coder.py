"""Qwen3-Coder, Qwen 3.5, Nemotron 3, MiMo, Step 3.5 and Seed-OSS: a function tag with parameter tags."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import CLOSER, JSON_BLOCK, NAMED_BLOCK, OPENER, PLAIN_NAME
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines

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
_PROMPT = Prompt(
    tool_lines(
        "# Tools\n\nThese functions can be called:\n<tools>\n",
        f"\n</tools>\n\nTo call one, write:\n{OPENER}\n{FUNCTION}name>\n{VALUE}key>\nvalue\n{VALUE_END}\n"
        f"{FUNCTION_END}\n{CLOSER}",
    ),
    enclosed("<tool_response>\n", "\n</tool_response>"),
    role="user",
)


def _written(opener: str, closer: str) -> Layout:
    before = f"{opener}\n{FUNCTION}{{name}}>\n"
    return Layout(tagged_call(before, f"{VALUE}{{key}}>\n", f"\n{VALUE_END}\n", f"{FUNCTION_END}\n{closer}"))


QWEN3_CODER = Format(
    "qwen3_coder",
    (_WRAPPER, JSON_BLOCK, NAMED_BLOCK, FUNCTION_BLOCK),
    _written(OPENER, CLOSER),
    _PROMPT,
    dropped=(CLOSER, "<|im_end|>"),
    bare=bare_json,
    holds=_HOLDS,
)
SEED_OSS = Format(
    "seed_oss",
    (FUNCTION_BLOCK,),
    _written(_SEED_OPENER, _SEED_CLOSER),
    _PROMPT,
    dropped=(_SEED_OPENER, _SEED_CLOSER, "<seed:eos>"),
    reasoning=(("<seed:think>", "</seed:think>"),),
    bare=bare_json,
    holds=Holds(_HOLDS.name, _HOLDS.key, (*_HOLDS.never, _SEED_OPENER, _SEED_CLOSER), schema=True),
)
