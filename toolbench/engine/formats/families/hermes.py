"""JSON between <tool_call> tags: Hermes 2 and 3, Qwen 2.5 and 3, Granite 4, ERNIE 4.5, EXAONE and SmolLM3."""

import re

from toolbench.engine.formats.call_writers import enclosed_result_writer, json_call_writer, tool_lines_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import JsonCallReader, NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

OPENER, CLOSER = "<tool_call>", "</tool_call>"
PLAIN_NAME = r"[^\s<|｜\[\]]+"
_NAME = re.compile(r"\s*([\w.:/-]+)\s*")


def parse_name_heading(heading: str) -> tuple[str, str]:
    """Return the name in a heading that contains only a name, otherwise ""; the second value, the id, is always ""."""
    match = _NAME.fullmatch(heading)
    return (match[1], "") if match else ("", "")


JSON_BLOCK = Block(OPENER, JsonCallReader(), (CLOSER, "</tool_calls>"), starts=("{", "["), values=True)
FENCED_BLOCK = Block(OPENER, JsonCallReader(), (CLOSER,), (OPENER,), starts=("```",))
NAMED_BLOCK = Block(OPENER, NamedJsonReader(parse_name_heading), (CLOSER,), (OPENER,))
PLURAL_BLOCK = Block("<tool_calls>", JsonCallReader(), ("</tool_calls>", CLOSER), starts=("{", "["), values=True)


HERMES = TextFormat(
    "hermes",
    (JSON_BLOCK, FENCED_BLOCK, NAMED_BLOCK, PLURAL_BLOCK),
    CallLayout(json_call_writer(before=f"{OPENER}\n", after=f"\n{CLOSER}")),
    PromptLayout(
        tool_lines_writer(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            "\n</tools>\n\nTo call one, write its name and arguments as a JSON object inside <tool_call> tags:\n"
            f'{OPENER}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{CLOSER}',
        ),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=("<|im_end|>", CLOSER),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(name=PLAIN_NAME),
)
