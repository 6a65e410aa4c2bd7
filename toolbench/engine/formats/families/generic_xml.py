"""A name tag and an arguments tag: for models with no format of their own."""

from dataclasses import dataclass

from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.hermes import CLOSER, OPENER, PLAIN_NAME
from toolbench.engine.formats.json_calls import Broken, as_object, clean_name, values
from toolbench.engine.formats.values import Known
from toolbench.engine.formats.writing import enclosed, named_json_call, tool_lines

NAME, NAME_END = "<name>", "</name>"
ARGUMENTS, ARGUMENTS_END = "<arguments>", "</arguments>"


@dataclass(frozen=True, slots=True)
class NameAndArguments:
    """Reads the two tags by searching for them, so that the arguments may hold anything."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        problem = Reading(problem="call_cut" if cut else "call_unreadable")
        heading, opened, written = body.partition(ARGUMENTS)
        name, named, behind = heading.partition(NAME)[2].partition(NAME_END)
        name = clean_name(name)
        lost = not named or (behind.strip() and not opened)
        if lost or not name or (cut and not written):
            return problem
        notes: set[str] = set()
        try:
            value = next(values(written, notes), None)
        except Broken:
            return problem
        arguments = as_object(value)
        if arguments is None or (cut and value is None):
            return problem
        return Reading((FoundCall(name, arguments),), notes=tuple(sorted(notes)))


GENERIC_XML = Format(
    "generic_xml",
    (Block(OPENER, NameAndArguments(), (CLOSER,), (OPENER,), starts=(NAME,), guard=(ARGUMENTS, ARGUMENTS_END)),),
    Layout(
        named_json_call(f"{OPENER}\n{NAME}", f"{NAME_END}\n{ARGUMENTS}", f"{ARGUMENTS_END}\n{CLOSER}"),
    ),
    Prompt(
        tool_lines(
            f"To use a tool, answer with:\n{OPENER}\n{NAME}function_name{NAME_END}\n"
            f'{ARGUMENTS}{{"arg1": "value1"}}{ARGUMENTS_END}\n{CLOSER}\n\nTools:\n',
        ),
        enclosed("<tool_response>\n", "\n</tool_response>"),
        role="user",
    ),
    dropped=(CLOSER,),
    bare=bare_json,
    holds=Holds(PLAIN_NAME, never=(ARGUMENTS, ARGUMENTS_END)),
    native=False,
)
