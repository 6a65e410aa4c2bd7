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
    """The form of calls in a text format.

    Attributes:
        many: whether calls look the same at every position, so that a grammar can repeat them.
        barred: the character that free text must not have, so that it never looks like a call; "" if there is none.
        behind: for formats whose calls are found after such text without code blocks: a class of characters that the
            text must end with, "" for any. None for other formats.
    """

    layout: CallLayout
    many: bool
    barred: str
    behind: str | None = None

    def around(self, name: str) -> tuple[str, str]:
        """Return the text before and after the arguments of a call of this tool."""
        written = self.layout.call(TextCall(name, dict(_PROBE_ARGUMENTS)), 0)
        *_, arguments = _PROBE_PATTERN.finditer(written)
        return written[: arguments.start()], written[arguments.end() :]


@lru_cache(maxsize=64)
def find_format_grammar(format: str) -> FormatGrammar:
    """Return the form of a text format.

    Raises:
        PlanError: the format is unknown, or does not write arguments as one JSON object.
    """
    family = get_format(format)
    layout = family.layout
    first, second = (layout.call(TextCall("f", dict(_PROBE_ARGUMENTS)), place) for place in (0, 1))
    if len(_PROBE_PATTERN.findall(first)) != 1:
        raise PlanError(f"the format {format} does not write arguments as JSON; no grammar is made for it")
    opener = f"{layout.before}{first}"[0]
    barred = "" if opener.isalnum() else opener
    return FormatGrammar(
        layout, first == second, barred, _find_closing_text(family, f"{layout.before}{first}") if barred else None
    )


def _find_closing_text(family: TextFormat, call: str) -> str | None:
    """Return the value of `behind`; a name directly before a marker may belong to the marker."""
    named = family.named(("f",))
    markers = [block for block in (*family.blocks, *named) if block.opener in call]
    if not markers:
        return None
    if any(block.at_line for block in markers):
        return r"[\n]"
    return r"[ \n.:!?]" if named else ""


def escape_for_class(char: str) -> str:
    """Return a character as both grammar languages write it in a class."""
    return f"\\{char}" if char in "[]" else char
