"""How the calls of an answer are written when a grammar holds it to a text format: whatever of the format stands
around the JSON of the arguments."""

import json
from dataclasses import dataclass
from functools import lru_cache

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.definition import Layout
from toolbench.engine.formats.registry import format_named
from toolbench.engine.formats.values import TextCall

_PROBE = {"k": "v"}
_WRITTEN = json.dumps(_PROBE)


@dataclass(frozen=True, slots=True)
class Form:
    """`many`: calls look the same wherever they stand, so that a grammar can repeat them. `barred` is the character
    that free text must not hold, so that it never looks like a call; "" where there is none."""

    layout: Layout
    many: bool
    barred: str

    def around(self, name: str) -> tuple[str, str]:
        """What stands before and behind the arguments of a call of this tool."""
        before, _, after = self.layout.call(TextCall(name, dict(_PROBE)), 0).rpartition(_WRITTEN)
        return before, after


@lru_cache(maxsize=64)
def form_named(format: str) -> Form:
    """The form of one of `engine.formats`. Raises PlanError for an unknown format, and for one that writes arguments
    in another way than as one JSON object."""
    layout = format_named(format).layout
    first, second = (layout.call(TextCall("f", dict(_PROBE)), place) for place in (0, 1))
    if first.count(_WRITTEN) != 1:
        raise PlanError(f"the format {format} does not write arguments as JSON; no grammar is made for it")
    opener = f"{layout.before}{first}"[0]
    return Form(layout, first == second, "" if opener.isalnum() else opener)
