"""Step 3: invoke tags of its own between tokens like DeepSeek's, as vLLM's parser reads them."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.tagged_calls import Tagged
from toolbench.engine.formats.writing import enclosed, tagged_call, tool_lines

_CALL_BEGIN, END = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
BEGIN = f"{_CALL_BEGIN}function<｜tool_sep｜>"
ALL_BEGIN, ALL_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
_INVOKE, _INVOKE_END = '<steptml:invoke name="', "</steptml:invoke>"
_VALUE, _VALUE_END = '<steptml:parameter name="', "</steptml:parameter>"


def _wrapper(opener: str) -> Block:
    return Block(opener, Tagged(re.compile("(?!)"), re.compile("(?!)"), ""), starts=(_INVOKE,), wrapper=True)


STEP3 = Format(
    "step3",
    (
        _wrapper(BEGIN),
        _wrapper(_CALL_BEGIN),  # models leave out what stands behind it
        Block(
            _INVOKE,
            Tagged(
                re.compile(r"(?P<name>[^\"]+)\">"),
                re.compile(rf"{_VALUE}(?P<key>[^\"]{{1,256}})\">"),
                _VALUE_END,
                _INVOKE_END,
            ),
            (_INVOKE_END,),
            (END, ALL_END, _INVOKE),
            guard=(_VALUE, _VALUE_END),
        ),
    ),
    Layout(
        tagged_call(f'{BEGIN}{_INVOKE}{{name}}">', f'{_VALUE}{{key}}">', _VALUE_END, f"{_INVOKE_END}{END}"),
        ALL_BEGIN,
        "",
        ALL_END,
    ),
    Prompt(tool_lines("# Tools\n\nThese tools can be called:\n"), enclosed("<tool_response>", "</tool_response>")),
    dropped=(ALL_BEGIN, ALL_END, BEGIN, END, _INVOKE_END),
    bare=bare_json,
    holds=Holds(r'[^\s<>|｜"]+', r'[^\s">]+', ("steptml:", "｜>"), schema=True),
)
