"""MiniMax M2 (invoke tags) and M1 (JSON lines), and others that write invoke tags."""

import re
from dataclasses import replace

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME, PLURAL_BLOCK
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.writing import enclosed, json_call, tagged_call, tool_lines

INVOKE, INVOKE_END = "<invoke name=", "</invoke>"
VALUE, VALUE_END = "<parameter name=", "</parameter>"
READ = Tagged(
    re.compile(r"\s*[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>"),
    re.compile(r"<parameter name=[\"']?(?P<key>[^\"'>\n]{1,256})[\"']?>"),
    VALUE_END,
    INVOKE_END,
)
HOLDS = Holds(r"[^\s<>|｜\"']+", r"[^\s\"'>]+", (VALUE, VALUE_END, INVOKE, INVOKE_END, "function_calls>"), schema=True)
_RESULT = enclosed("<response>", "</response>")


def invokes(*wrapper_ends: str) -> Block:
    """A block of invoke tags, which the end of what is around it ends too."""
    return Block(INVOKE, READ, (INVOKE_END,), (*wrapper_ends, INVOKE), guard=(VALUE, VALUE_END))


def invoke_layout(before: str, after: str) -> Layout:
    """Invoke tags between two texts."""
    key = f'{VALUE}"{{key}}">'
    return Layout(tagged_call(f'{INVOKE}"{{name}}">\n', key, f"{VALUE_END}\n", INVOKE_END), before, "\n", after)


def _how(opener: str, closer: str, line: str) -> str:
    value = f'{VALUE}"key">{line}value{line}{VALUE_END}'
    return f'\n</tools>\n\nTo call one, write:\n{opener}\n{INVOKE}"name">\n{value}\n{INVOKE_END}\n{closer}'


_TOOLS = "# Tools\n\nThese tools can be called:\n<tools>\n"
_M2, _M2_END = "<minimax:tool_call>", "</minimax:tool_call>"
_DOTS, _DOTS_END = "<dots_function_call>", "</dots_function_call>"
MINIMAX_M2 = Format(
    "minimax_m2",
    (invokes(_M2_END),),
    invoke_layout(f"{_M2}\n", f"\n{_M2_END}"),
    Prompt(tool_lines(_TOOLS, _how(_M2, _M2_END, ""), flat=True, each=("<tool>", "</tool>")), _RESULT),
    dropped=(_M2, _M2_END, INVOKE_END, "[e~["),
    bare=bare_json,
    holds=Holds(HOLDS.name, HOLDS.key, (*HOLDS.never, _M2, _M2_END), schema=True),
)
DOTS = Format(
    "dots",
    (
        Block(
            _DOTS,
            replace(READ, name=re.compile(rf"\s*{INVOKE}{READ.name.pattern}"), lines=True),
            (INVOKE_END,),
            (_DOTS_END,),
            starts=(INVOKE,),
            guard=(VALUE, VALUE_END),
        ),
        replace(invokes(_DOTS_END), read=replace(READ, lines=True)),
    ),
    Layout(
        tagged_call(
            f'{_DOTS}\n{INVOKE}"{{name}}">\n',
            f'{VALUE}"{{key}}">\n',
            f"\n{VALUE_END}\n",
            f"{INVOKE_END}\n{_DOTS_END}",
        )
    ),
    Prompt(
        tool_lines(_TOOLS, _how(_DOTS, _DOTS_END, "\n")),
        enclosed("\n<dots_function_response>\n", "\n</dots_function_response>"),
        results_between="",
    ),
    dropped=(_DOTS, _DOTS_END, INVOKE_END, "<|endofassistant|>"),
    bare=bare_json,
    holds=Holds(HOLDS.name, HOLDS.key, (*HOLDS.never, _DOTS, _DOTS_END), schema=True),
)
MINIMAX_M1 = Format(
    "minimax_m1",
    (PLURAL_BLOCK,),
    Layout(json_call(), "<tool_calls>\n", "\n", "\n</tool_calls>"),
    Prompt(
        tool_lines(
            _TOOLS,
            '\n</tools>\n\nTo call some, write:\n<tool_calls>\n{"name": <name>, "arguments": <object>}\n</tool_calls>',
        ),
        enclosed("tool result: ", "\n\n"),
    ),
    dropped=("</tool_calls>", "<end_of_sentence>"),
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
