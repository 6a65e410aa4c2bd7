"""PLaMo 3: a name and JSON, each between two markers, as vLLM's parser reads them."""

import re

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJson
from toolbench.engine.formats.writing import enclosed, named_json_call, tool_list


def _marks(what: str) -> tuple[str, str]:
    return f"<|plamo:begin_{what}:plamo|>", f"<|plamo:end_{what}:plamo|>"


ALL, ALL_END = _marks("tool_requests")
ONE, ONE_END = _marks("tool_request")
NAME, NAME_END = _marks("tool_name")
ARGUMENTS, ARGUMENTS_END = _marks("tool_arguments")
CONSTRAINT, MESSAGE = "<|plamo:constrain|>json", "<|plamo:msg|>"  # told the decoder that JSON follows
_HEADING = re.compile(
    rf"\s*{re.escape(NAME)}([^<]+){re.escape(NAME_END)}\s*(?:{re.escape(ARGUMENTS)})?\s*"
    rf"(?:{re.escape(CONSTRAINT)})?\s*(?:{re.escape(MESSAGE)})?\s*"
)


def _heading(heading: str) -> tuple[str, str]:
    found = _HEADING.fullmatch(heading)
    return (found[1].strip(), "") if found else ("", "")


PLAMO3 = Format(
    "plamo3",
    (
        Block(
            ONE,
            NamedJson(_heading),
            (f"{ARGUMENTS_END}{ONE_END}", ONE_END),
            (ONE, ALL_END),
            values=True,
            many=False,
        ),
    ),
    Layout(
        named_json_call(f"{ONE}{NAME}", f"{NAME_END}{ARGUMENTS}{CONSTRAINT}{MESSAGE}", f"{ARGUMENTS_END}{ONE_END}"),
        ALL,
        "",
        ALL_END,
    ),
    Prompt(tool_list("Tools:\n", "\n", flat=True), enclosed("<tool_response>", "</tool_response>")),
    dropped=(ALL, ALL_END, ONE_END, ARGUMENTS_END, "<|plamo:tag|>"),
    reasoning=(_marks("think"),),
    bare=bare_json,
    holds=Holds(PLAIN_NAME),
)
