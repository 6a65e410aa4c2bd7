"""PLaMo 3: a name and JSON, each between two markers, as vLLM's parser reads them."""

import re

from toolbench.engine.formats.call_writers import enclosed_result_writer, named_json_call_writer, tool_list_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat


def _build_markers(text_kind: str) -> tuple[str, str]:
    return f"<|plamo:begin_{text_kind}:plamo|>", f"<|plamo:end_{text_kind}:plamo|>"


ALL, ALL_END = _build_markers("tool_requests")
ONE, ONE_END = _build_markers("tool_request")
NAME, NAME_END = _build_markers("tool_name")
ARGUMENTS, ARGUMENTS_END = _build_markers("tool_arguments")
CONSTRAINT, MESSAGE = "<|plamo:constrain|>json", "<|plamo:msg|>"  # told the decoder that JSON follows
_HEADING = re.compile(
    rf"\s*{re.escape(NAME)}([^<]+){re.escape(NAME_END)}\s*(?:{re.escape(ARGUMENTS)})?\s*"
    rf"(?:{re.escape(CONSTRAINT)})?\s*(?:{re.escape(MESSAGE)})?\s*"
)


def _parse_heading(heading: str) -> tuple[str, str]:
    found = _HEADING.fullmatch(heading)
    return (found[1].strip(), "") if found else ("", "")


PLAMO3 = TextFormat(
    "plamo3",
    (
        Block(
            ONE,
            NamedJsonReader(_parse_heading),
            (f"{ARGUMENTS_END}{ONE_END}", ONE_END),
            (ONE, ALL_END),
            values=True,
            many=False,
        ),
    ),
    CallLayout(
        named_json_call_writer(
            f"{ONE}{NAME}", f"{NAME_END}{ARGUMENTS}{CONSTRAINT}{MESSAGE}", f"{ARGUMENTS_END}{ONE_END}"
        ),
        ALL,
        "",
        ALL_END,
    ),
    PromptLayout(
        tool_list_writer("Tools:\n", "\n", flat=True), enclosed_result_writer("<tool_response>", "</tool_response>")
    ),
    dropped=(ALL, ALL_END, ONE_END, ARGUMENTS_END, "<|plamo:tag|>"),
    reasoning=(_build_markers("think"),),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(PLAIN_NAME),
)
