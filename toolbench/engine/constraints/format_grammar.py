"""How the calls of an answer are written when a grammar holds it to a text format: whatever of the format stands
around the JSON of the arguments."""

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
    """`many`: calls look the same wherever they stand, so that a grammar can repeat them. `barred` is the character
    that free text must not hold, so that it never looks like a call; "" where there is none. Where calls are found
    behind such text, if it has no code blocks, `behind` is a class of the characters that it must end with, "" for any;
    None where they are not."""

    layout: CallLayout
    many: bool
    barred: str
    behind: str | None = None

    def around(self, name: str) -> tuple[str, str]:
        """What stands before and behind the arguments of a call of this tool."""
        written = self.layout.call(TextCall(name, dict(_PROBE_ARGUMENTS)), 0)
        *_, arguments = _PROBE_PATTERN.finditer(written)
        return written[: arguments.start()], written[arguments.end() :]


@lru_cache(maxsize=64)
def find_format_grammar(format: str) -> FormatGrammar:
    """The form of one of `engine.formats`. Raises PlanError for an unknown format, and for one that writes arguments
    in another way than as one JSON object."""
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
    """A name right before a marker may belong to it."""
    named = family.named(("f",))
    markers = [block for block in (*family.blocks, *named) if block.opener in call]
    if not markers:
        return None
    if any(block.at_line for block in markers):
        return r"[\n]"
    return r"[ \n.:!?]" if named else ""


def escape_for_class(char: str) -> str:
    """A character as classes of both languages spell it."""
    return f"\\{char}" if char in "[]" else char
