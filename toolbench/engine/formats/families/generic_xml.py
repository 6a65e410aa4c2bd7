"""A name tag and an arguments tag, for models that were trained on no text format."""

from dataclasses import dataclass

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_named_json_call_writer,
    build_tool_lines_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import END_MARKER, PLAIN_NAME, START_MARKER
from toolbench.engine.formats.json_calls import BrokenValueError, clean_name, parse_object, read_values
from toolbench.engine.formats.specification import (
    TRUNCATED_BLOCK,
    UNREADABLE_BLOCK,
    Block,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import ToolSchemas

NAME_START, NAME_END = "<name>", "</name>"
ARGUMENTS_START, ARGUMENTS_END = "<arguments>", "</arguments>"


@dataclass(frozen=True, slots=True)
class NameAndArgumentsReader:
    """A reader of a name tag, and of JSON after the start tag of the arguments.

    The arguments end where the JSON ends, so that their strings may contain the tags.
    """

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        unread_block = TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        heading, arguments_start, arguments_text = body.partition(ARGUMENTS_START)
        name, name_end, after_name = heading.partition(NAME_START)[2].partition(NAME_END)
        name = clean_name(name)
        is_tag_missing = not name_end or (after_name.strip() and not arguments_start)
        if is_tag_missing or not name or (is_truncated and not arguments_text):
            return unread_block
        deviation_codes: set[str] = set()
        try:
            value = next(read_values(arguments_text, deviation_codes), None)
        except BrokenValueError:
            return unread_block
        arguments = parse_object(value)
        if arguments is None or (is_truncated and value is None):
            return unread_block
        return ParsedBlock((ParsedCall(name, arguments),), deviation_codes=tuple(sorted(deviation_codes)))


GENERIC_XML = TextFormat(
    "generic_xml",
    (
        Block(
            START_MARKER,
            NameAndArgumentsReader(),
            (END_MARKER,),
            (START_MARKER,),
            body_starts=(NAME_START,),
            value_markers=(ARGUMENTS_START, ARGUMENTS_END),
        ),
    ),
    CallLayout(
        build_named_json_call_writer(
            f"{START_MARKER}\n{NAME_START}", f"{NAME_END}\n{ARGUMENTS_START}", f"{ARGUMENTS_END}\n{END_MARKER}"
        ),
    ),
    PromptLayout(
        build_tool_lines_writer(
            f"To use a tool, answer with:\n{START_MARKER}\n{NAME_START}function_name{NAME_END}\n"
            f'{ARGUMENTS_START}{{"arg1": "value1"}}{ARGUMENTS_END}\n{END_MARKER}\n\nTools:\n',
        ),
        build_enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
    ),
    dropped_tokens=(END_MARKER,),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(PLAIN_NAME, forbidden_texts=(ARGUMENTS_START, ARGUMENTS_END)),
    is_native=False,
)
