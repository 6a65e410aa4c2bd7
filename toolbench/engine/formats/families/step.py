"""Step 3: invoke tags between tokens like DeepSeek's, following vLLM's parser."""

import re

from toolbench.engine.formats.call_writers import enclosed_result_writer, tagged_call_writer, tool_lines_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader

_CALL_BEGIN, END = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
BEGIN = f"{_CALL_BEGIN}function<｜tool_sep｜>"
CALLS_BEGIN, CALLS_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
_INVOKE, _INVOKE_END = '<steptml:invoke name="', "</steptml:invoke>"
_VALUE, _VALUE_END = '<steptml:parameter name="', "</steptml:parameter>"


def _build_wrapper(opener: str) -> Block:
    return Block(opener, TaggedReader(re.compile("(?!)"), re.compile("(?!)"), ""), starts=(_INVOKE,), wrapper=True)


STEP3 = TextFormat(
    "step3",
    (
        _build_wrapper(BEGIN),
        _build_wrapper(_CALL_BEGIN),  # models leave out the text between this token and the invoke tag
        Block(
            _INVOKE,
            TaggedReader(
                re.compile(r"(?P<name>[^\"]+)\">"),
                re.compile(rf"{_VALUE}(?P<key>[^\"]{{1,256}})\">"),
                _VALUE_END,
                _INVOKE_END,
            ),
            (_INVOKE_END,),
            (END, CALLS_END, _INVOKE),
            guard=(_VALUE, _VALUE_END),
        ),
    ),
    CallLayout(
        tagged_call_writer(f'{BEGIN}{_INVOKE}{{name}}">', f'{_VALUE}{{key}}">', _VALUE_END, f"{_INVOKE_END}{END}"),
        CALLS_BEGIN,
        "",
        CALLS_END,
    ),
    PromptLayout(
        tool_lines_writer("# Tools\n\nThese tools can be called:\n"),
        enclosed_result_writer("<tool_response>", "</tool_response>"),
    ),
    dropped=(CALLS_BEGIN, CALLS_END, BEGIN, END, _INVOKE_END),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r'[^\s<>|｜"]+', r'[^\s">]+', ("steptml:", "｜>"), schema=True),
)
