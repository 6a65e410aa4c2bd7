"""The text around the arguments of a call in a text format, for grammars that enforce the format."""

import re
from dataclasses import dataclass
from functools import lru_cache

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.specification import CallLayout, TextFormat
from toolbench.engine.formats.types import TextCall

_PROBE_ARGUMENTS = {"k": "v"}
_PROBE_PATTERN = re.compile(r'\{\s*"k":\s*"v"\s*\}')  # on one line or over several


@dataclass(frozen=True, slots=True)
class FormatGrammar:
    """The properties of a text format that a grammar needs.

    Attributes:
        layout: writes the calls.
        is_repeatable: whether a call is written the same at every position, so that a grammar can repeat it.
        barred_character: the first character of a call, which free text must not contain; "" if calls begin with a
            letter or digit, so that free text cannot be told from a call.
        text_end: None if no free text may stand before calls. Otherwise the character class that the last character
            of this text must match, "" for any.
    """

    layout: CallLayout
    is_repeatable: bool
    barred_character: str
    text_end: str | None = None

    def split_around_arguments(self, name: str) -> tuple[str, str]:
        """Return the texts before and after the arguments of a call of the tool `name`."""
        call_text = self.layout.write_call(TextCall(name, dict(_PROBE_ARGUMENTS)), 0)
        *_, arguments = _PROBE_PATTERN.finditer(call_text)
        return call_text[: arguments.start()], call_text[arguments.end() :]


@lru_cache(maxsize=64)
def find_format_grammar(format: str) -> FormatGrammar:
    """Return the properties of a text format that a grammar needs.

    Raises:
        PlanError: the format is unknown, or a call in it has not exactly one JSON object with the arguments.
    """
    text_format = get_format(format)
    layout = text_format.layout
    first_call, second_call = (layout.write_call(TextCall("f", dict(_PROBE_ARGUMENTS)), index) for index in (0, 1))
    if len(_PROBE_PATTERN.findall(first_call)) != 1:
        raise PlanError(f"the format {format} does not write arguments as JSON; no grammar is made for it")
    first_character = f"{layout.before_calls}{first_call}"[0]
    barred = "" if first_character.isalnum() else first_character
    return FormatGrammar(
        layout,
        first_call == second_call,
        barred,
        _find_text_end(text_format, f"{layout.before_calls}{first_call}") if barred else None,
    )


def _find_text_end(text_format: TextFormat, call: str) -> str | None:
    """Return the value of `FormatGrammar.text_end`.

    A format with names before its markers requires a separator, so that the last word of the text is not read as a
    name.
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
