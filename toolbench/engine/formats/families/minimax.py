"""MiniMax M2 (invoke tags) and M1 (JSON lines), and others that write invoke tags."""

import re

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


def _wrapped(name: str, wrapper: str) -> Format:
    opener, closer = f"<{wrapper}>", f"</{wrapper}>"
    how = f'\n</tools>\n\nTo call one, write:\n{opener}\n{INVOKE}"name">\n{VALUE}"key">value{VALUE_END}\n{INVOKE_END}\n'
    return Format(
        name,
        (invokes(closer),),
        invoke_layout(f"{opener}\n", f"\n{closer}"),
        Prompt(tool_lines("# Tools\n\nThese tools can be called:\n<tools>\n", how + closer), _RESULT),
        dropped=(opener, closer, INVOKE_END, "[e~["),
        bare=bare_json,
        holds=Holds(HOLDS.name, HOLDS.key, (*HOLDS.never, opener, closer), schema=True),
    )


MINIMAX_M2 = _wrapped("minimax_m2", "minimax:tool_call")
DOTS = _wrapped("dots", "dots_function_call")
MINIMAX_M1 = Format(
    "minimax_m1",
    (PLURAL_BLOCK,),
    Layout(json_call(), "<tool_calls>\n", "\n", "\n</tool_calls>"),
    Prompt(
        tool_lines(
            "# Tools\n\nThese tools can be called:\n<tools>\n",
            '\n</tools>\n\nTo call some, write:\n<tool_calls>\n{"name": <name>, "arguments": <object>}\n</tool_calls>',
        ),
        _RESULT,
    ),
    dropped=("</tool_calls>",),
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
