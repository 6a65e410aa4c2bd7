"""The text around the arguments of a call in a text format, for grammars that enforce the format."""

import re
from dataclasses import dataclass
from functools import lru_cache

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.specification import CallLayout, TextFormat
from toolbench.engine.formats.types import TextCall

# The text of a call with these arguments shows where a format writes arguments.
_SAMPLE_ARGUMENTS = {"k": "v"}
_SAMPLE_ARGUMENTS_PATTERN = re.compile(r'\{\s*"k":\s*"v"\s*\}')  # on one line or over several


@dataclass(frozen=True, slots=True)
class FormatGrammar:
    """The properties of a text format that a grammar needs.

    Attributes:
        layout: the layout that writes the calls.
        is_repeatable: whether a call has the same text at every position in an answer, so that a grammar can repeat it.
        barred_character: the first character of the text of calls, which free text must not contain; "" if it is a
            letter or digit, which free text cannot do without.
        text_end: the character class that the last character of free text before calls must match; "" for any
            character; None if there may be no free text before calls.
    """

    layout: CallLayout
    is_repeatable: bool
    barred_character: str
    text_end: str | None = None

    def split_around_arguments(self, name: str) -> tuple[str, str]:
        """Return the texts before and after the arguments of a call of the tool `name`."""
        call_text = self.layout.write_call(TextCall(name, dict(_SAMPLE_ARGUMENTS)), 0)
        *_, arguments = _SAMPLE_ARGUMENTS_PATTERN.finditer(call_text)
        return call_text[: arguments.start()], call_text[arguments.end() :]


@lru_cache(maxsize=64)
def find_format_grammar(format_name: str) -> FormatGrammar:
    """Return the properties of a text format that a grammar needs.

    Raises:
        PlanError: the format is unknown, or it does not write the arguments of a call as one JSON object.
    """
    text_format = get_format(format_name)
    layout = text_format.layout
    first_call, second_call = (layout.write_call(TextCall("f", dict(_SAMPLE_ARGUMENTS)), index) for index in (0, 1))
    if len(_SAMPLE_ARGUMENTS_PATTERN.findall(first_call)) != 1:
        raise PlanError(f"the text format {format_name} does not write arguments as JSON, so no grammar can enforce it")
    first_character = f"{layout.before_calls}{first_call}"[0]
    barred = "" if first_character.isalnum() else first_character
    return FormatGrammar(
        layout,
        first_call == second_call,
        barred,
        _find_text_end(text_format, f"{layout.before_calls}{first_call}") if barred else None,
    )


def _find_text_end(text_format: TextFormat, call: str) -> str | None:
    """Return the value of `FormatGrammar.text_end` for a format in which `call` is the text of a call.

    A format whose calls begin a line requires a line break. A format with tool names before its start markers requires
    a separator, so that the last word of the free text is not read as a part of the name.
    """
    named_blocks = text_format.build_named_blocks(("f",))
    matching_blocks = [block for block in (*text_format.blocks, *named_blocks) if block.start_marker in call]
    if not matching_blocks:
        return None
    if any(block.must_begin_line for block in matching_blocks):
        return r"[\n]"
    return r"[ \n.:!?]" if named_blocks else ""


def escape_for_class(char: str) -> str:
    """Return a character as GBNF and Lark write it inside a character class."""
    return f"\\{char}" if char in "[]" else char
