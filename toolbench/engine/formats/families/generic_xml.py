"""A name tag and an arguments tag, for models that were trained on no text format."""

from dataclasses import dataclass

from toolbench.engine.formats.call_writers import enclosed_result_writer, named_json_call_writer, tool_lines_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.hermes import CLOSER, OPENER, PLAIN_NAME
from toolbench.engine.formats.json_calls import BrokenValueError, clean_name, parse_object, read_values
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    FoundCall,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import ToolSchemas

NAME, NAME_END = "<name>", "</name>"
ARGUMENTS, ARGUMENTS_END = "<arguments>", "</arguments>"


@dataclass(frozen=True, slots=True)
class NameAndArgumentsReader:
    """A reader that searches for the tags, so that the arguments may contain any text."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        problem = ParsedBlock(problem="call_cut" if cut else "call_unreadable")
        heading, arguments_start, arguments_text = body.partition(ARGUMENTS)
        name, name_end, after_name = heading.partition(NAME)[2].partition(NAME_END)
        name = clean_name(name)
        is_tag_missing = not name_end or (after_name.strip() and not arguments_start)
        if is_tag_missing or not name or (cut and not arguments_text):
            return problem
        notes: set[str] = set()
        try:
            value = next(read_values(arguments_text, notes), None)
        except BrokenValueError:
            return problem
        arguments = parse_object(value)
        if arguments is None or (cut and value is None):
            return problem
        return ParsedBlock((FoundCall(name, arguments),), notes=tuple(sorted(notes)))


GENERIC_XML = TextFormat(
    "generic_xml",
    (Block(OPENER, NameAndArgumentsReader(), (CLOSER,), (OPENER,), starts=(NAME,), guard=(ARGUMENTS, ARGUMENTS_END)),),
    CallLayout(
        named_json_call_writer(f"{OPENER}\n{NAME}", f"{NAME_END}\n{ARGUMENTS}", f"{ARGUMENTS_END}\n{CLOSER}"),
    ),
    PromptLayout(
        tool_lines_writer(
            f"To use a tool, answer with:\n{OPENER}\n{NAME}function_name{NAME_END}\n"
            f'{ARGUMENTS}{{"arg1": "value1"}}{ARGUMENTS_END}\n{CLOSER}\n\nTools:\n',
        ),
        enclosed_result_writer("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=(CLOSER,),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(PLAIN_NAME, never=(ARGUMENTS, ARGUMENTS_END)),
    native=False,
)
