"""Hermes 2/3, Qwen 2.5 and 3, Granite 4, ERNIE 4.5, EXAONE, SmolLM3: JSON between <tool_call> tags."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.json_calls import JsonCalls, NamedJson
from toolbench.engine.formats.writing import enclosed, json_call, tool_lines

OPENER, CLOSER = "<tool_call>", "</tool_call>"
PLAIN_NAME = r"[^\s<|｜\[\]]+"
_NAME = re.compile(r"\s*([\w.:/-]+)\s*")


def name_alone(heading: str) -> tuple[str, str]:
    """A heading that is nothing but a name."""
    found = _NAME.fullmatch(heading)
    return (found[1], "") if found else ("", "")


JSON_BLOCK = Block(OPENER, JsonCalls(), (CLOSER, "</tool_calls>"), starts=("{", "["), values=True)
FENCED_BLOCK = Block(OPENER, JsonCalls(), (CLOSER,), (OPENER,), starts=("```",))
NAMED_BLOCK = Block(OPENER, NamedJson(name_alone), (CLOSER,), (OPENER,))
PLURAL_BLOCK = Block("<tool_calls>", JsonCalls(), ("</tool_calls>", CLOSER), starts=("{", "["), values=True)


HERMES = Format(
    "hermes",
    (JSON_BLOCK, FENCED_BLOCK, NAMED_BLOCK, PLURAL_BLOCK),
    Layout(json_call(before=f"{OPENER}\n", after=f"\n{CLOSER}")),
    Prompt(
        tool_lines(
            "# Tools\n\nThese functions can be called:\n<tools>\n",
            "\n</tools>\n\nTo call one, write its name and arguments as a JSON object inside <tool_call> tags:\n"
            f'{OPENER}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{CLOSER}',
        ),
        enclosed("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=("<|im_end|>", CLOSER),
    bare=bare_json,
    holds=Holds(name=PLAIN_NAME),
)
