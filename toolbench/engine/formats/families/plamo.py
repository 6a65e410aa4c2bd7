"""PLaMo 3: a name and JSON, each between two markers, following vLLM's parser."""

import re

from toolbench.engine.formats.call_writers import enclosed_result_writer, named_json_call_writer, tool_list_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat


def _build_markers(name: str) -> tuple[str, str]:
    return f"<|plamo:begin_{name}:plamo|>", f"<|plamo:end_{name}:plamo|>"


REQUESTS, REQUESTS_END = _build_markers("tool_requests")
REQUEST, REQUEST_END = _build_markers("tool_request")
NAME, NAME_END = _build_markers("tool_name")
ARGUMENTS, ARGUMENTS_END = _build_markers("tool_arguments")
CONSTRAINT, MESSAGE = "<|plamo:constrain|>json", "<|plamo:msg|>"  # written before the arguments, which are JSON
_HEADING = re.compile(
    rf"\s*{re.escape(NAME)}([^<]+){re.escape(NAME_END)}\s*(?:{re.escape(ARGUMENTS)})?\s*"
    rf"(?:{re.escape(CONSTRAINT)})?\s*(?:{re.escape(MESSAGE)})?\s*"
)


def _parse_heading(heading: str) -> tuple[str, str]:
    match = _HEADING.fullmatch(heading)
    return (match[1].strip(), "") if match else ("", "")


PLAMO3 = TextFormat(
    "plamo3",
    (
        Block(
            REQUEST,
            NamedJsonReader(_parse_heading),
            (f"{ARGUMENTS_END}{REQUEST_END}", REQUEST_END),
            (REQUEST, REQUESTS_END),
            values=True,
            many=False,
        ),
    ),
    CallLayout(
        named_json_call_writer(
            f"{REQUEST}{NAME}", f"{NAME_END}{ARGUMENTS}{CONSTRAINT}{MESSAGE}", f"{ARGUMENTS_END}{REQUEST_END}"
        ),
        REQUESTS,
        "",
        REQUESTS_END,
    ),
    PromptLayout(
        tool_list_writer("Tools:\n", "\n", flat=True), enclosed_result_writer("<tool_response>", "</tool_response>")
    ),
    dropped=(REQUESTS, REQUESTS_END, REQUEST_END, ARGUMENTS_END, "<|plamo:tag|>"),
    reasoning=(_build_markers("think"),),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(PLAIN_NAME),
)
