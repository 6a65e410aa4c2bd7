"""Parser of strategy expressions.

An expression is a strategy or preset, followed by any number of added presets (`+`) and removed workarounds (`!`).

Examples: `production+content_tag_tool_call_fallback`, `production!content_tag_tool_call_fallback`.
"""

import re
from collections.abc import Container
from dataclasses import dataclass

ADD_PRESET, REMOVE_WORKAROUND = "+", "!"


@dataclass(frozen=True, slots=True)
class StrategyExpression:
    """A parsed strategy expression.

    Attributes:
        base: name of the strategy or preset.
        added_presets: names of presets to add above the workarounds.
        removed_workarounds: names of workarounds to leave out.
    """

    base: str
    added_presets: tuple[str, ...] = ()
    removed_workarounds: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the expression."""
        return (self.base, *self.added_presets, *self.removed_workarounds)

    def list_unknown_names(self, strategies: Container[str], presets: Container[str]) -> tuple[str, ...]:
        """Return the names in the expression that do not exist.

        The base may be a strategy or a preset; the other names must be presets.
        """
        base = () if self.base in strategies or self.base in presets else (self.base,)
        return (*base, *(name for name in (*self.added_presets, *self.removed_workarounds) if name not in presets))


def parse_strategy(text: str) -> StrategyExpression:
    """Parse a strategy expression. The names in it need not exist."""
    base, *parts = re.split(r"(?=[+!])", text)
    added = tuple(part[1:] for part in parts if part.startswith(ADD_PRESET))
    removed = tuple(part[1:] for part in parts if part.startswith(REMOVE_WORKAROUND))
    return StrategyExpression(base, added, removed)
