"""Step 3: invoke tags between tokens like those of DeepSeek, as vLLM's parser reads them."""

import re

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tagged_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat
from toolbench.engine.formats.tagged_calls import TaggedReader

_CALL_BEGIN_TOKEN, CALL_END = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
CALL_BEGIN = f"{_CALL_BEGIN_TOKEN}function<｜tool_sep｜>"
CALLS_BEGIN, CALLS_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
_INVOKE_START, _INVOKE_END = '<steptml:invoke name="', "</steptml:invoke>"
_VALUE_START, _VALUE_END = '<steptml:parameter name="', "</steptml:parameter>"


def _build_wrapper(start_marker: str) -> Block:
    """Return a wrapper of invoke tags. Its reader, which matches nothing, is never called."""
    return Block(
        start_marker,
        TaggedReader(re.compile("(?!)"), re.compile("(?!)"), ""),
        body_starts=(_INVOKE_START,),
        is_wrapper=True,
    )


STEP3 = TextFormat(
    "step3",
    (
        _build_wrapper(CALL_BEGIN),
        _build_wrapper(_CALL_BEGIN_TOKEN),  # models may leave out the text between this token and the invoke tag
        Block(
            _INVOKE_START,
            TaggedReader(
                re.compile(r"(?P<name>[^\"]+)\">"),
                re.compile(rf"{_VALUE_START}(?P<key>[^\"]{{1,256}})\">"),
                _VALUE_END,
                _INVOKE_END,
            ),
            (_INVOKE_END,),
            (CALL_END, CALLS_END, _INVOKE_START),
            value_markers=(_VALUE_START, _VALUE_END),
        ),
    ),
    CallLayout(
        build_tagged_call_writer(
            f'{CALL_BEGIN}{_INVOKE_START}{{name}}">', f'{_VALUE_START}{{key}}">', _VALUE_END, f"{_INVOKE_END}{CALL_END}"
        ),
        CALLS_BEGIN,
        "",
        CALLS_END,
    ),
    PromptLayout(
        build_tool_lines_writer("# Tools\n\nThese tools can be called:\n"),
        build_enclosed_result_writer("<tool_response>", "</tool_response>"),
    ),
    dropped_tokens=(CALLS_BEGIN, CALLS_END, CALL_BEGIN, CALL_END, _INVOKE_END),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(r'[^\s<>|｜"]+', r'[^\s">]+', ("steptml:", "｜>"), needs_schema=True),
)
