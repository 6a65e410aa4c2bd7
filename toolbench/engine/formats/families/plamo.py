"""PLaMo 3: a name and JSON arguments, each between two markers, as vLLM's parser reads them."""

import re

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_named_json_call_writer,
    build_tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import PLAIN_NAME
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat


def _build_markers(name: str) -> tuple[str, str]:
    return f"<|plamo:begin_{name}:plamo|>", f"<|plamo:end_{name}:plamo|>"


REQUESTS_START, REQUESTS_END = _build_markers("tool_requests")
REQUEST_START, REQUEST_END = _build_markers("tool_request")
NAME_START, NAME_END = _build_markers("tool_name")
ARGUMENTS_START, ARGUMENTS_END = _build_markers("tool_arguments")
CONSTRAINT_TOKEN = "<|plamo:constrain|>json"  # says that the arguments are JSON
MESSAGE_TOKEN = "<|plamo:msg|>"  # written before the arguments
_HEADING = re.compile(
    rf"\s*{re.escape(NAME_START)}([^<]+){re.escape(NAME_END)}\s*(?:{re.escape(ARGUMENTS_START)})?\s*"
    rf"(?:{re.escape(CONSTRAINT_TOKEN)})?\s*(?:{re.escape(MESSAGE_TOKEN)})?\s*"
)


def _parse_heading(heading: str) -> tuple[str, str]:
    match = _HEADING.fullmatch(heading)
    return (match[1].strip(), "") if match else ("", "")


PLAMO3 = TextFormat(
    "plamo3",
    (
        Block(
            REQUEST_START,
            NamedJsonReader(_parse_heading),
            (f"{ARGUMENTS_END}{REQUEST_END}", REQUEST_END),
            (REQUEST_START, REQUESTS_END),
            ends_after_values=True,
            allows_many_values=False,
        ),
    ),
    CallLayout(
        build_named_json_call_writer(
            f"{REQUEST_START}{NAME_START}",
            f"{NAME_END}{ARGUMENTS_START}{CONSTRAINT_TOKEN}{MESSAGE_TOKEN}",
            f"{ARGUMENTS_END}{REQUEST_END}",
        ),
        REQUESTS_START,
        "",
        REQUESTS_END,
    ),
    PromptLayout(
        build_tool_list_writer("Tools:\n", "\n", is_flat=True),
        build_enclosed_result_writer("<tool_response>", "</tool_response>"),
    ),
    dropped_tokens=(REQUESTS_START, REQUESTS_END, REQUEST_END, ARGUMENTS_END, "<|plamo:tag|>"),
    reasoning_markers=(_build_markers("think"),),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME),
)
