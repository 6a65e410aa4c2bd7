"""JSON between <tool_call> tags.

Hermes 2 and 3, Qwen 2.5 and 3, Granite 4, ERNIE 4.5, EXAONE and SmolLM3 write this format.
"""

import re

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_json_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import JsonCallReader, NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

START_MARKER, END_MARKER = "<tool_call>", "</tool_call>"
# A pattern of tool names without white space and without characters that delimit tokens, tags and arrays.
PLAIN_NAME = r"[^\s<|｜\[\]]+"
_NAME = re.compile(r"\s*([\w.:/-]+)\s*")


def parse_name_heading(heading: str) -> tuple[str, str]:
    """Return the name in a heading that contains only a name, otherwise "".

    The second value, the id, is always "".
    """
    match = _NAME.fullmatch(heading)
    return (match[1], "") if match else ("", "")


JSON_BLOCK = Block(
    START_MARKER, JsonCallReader(), (END_MARKER, "</tool_calls>"), body_starts=("{", "["), ends_after_values=True
)
FENCED_BLOCK = Block(START_MARKER, JsonCallReader(), (END_MARKER,), (START_MARKER,), body_starts=("```",))
NAMED_BLOCK = Block(START_MARKER, NamedJsonReader(parse_name_heading), (END_MARKER,), (START_MARKER,))
PLURAL_BLOCK = Block(
    "<tool_calls>", JsonCallReader(), ("</tool_calls>", END_MARKER), body_starts=("{", "["), ends_after_values=True
)


HERMES = TextFormat(
    "hermes",
    (JSON_BLOCK, FENCED_BLOCK, NAMED_BLOCK, PLURAL_BLOCK),
    CallLayout(build_json_call_writer(prefix=f"{START_MARKER}\n", suffix=f"\n{END_MARKER}")),
    PromptLayout(
        build_tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            "\n</tools>\n\nTo call one, write its name and arguments as a JSON object inside <tool_call> tags:\n"
            f'{START_MARKER}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{END_MARKER}',
        ),
        build_enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
    ),
    dropped_tokens=("<|im_end|>", END_MARKER),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(name_pattern=PLAIN_NAME),
)
