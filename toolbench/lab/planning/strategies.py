"""Strategy expressions: a strategy or preset, with presets added (`+`) or workarounds removed (`!`).

Examples: `production+content_tag_tool_call_fallback`, `production!content_tag_tool_call_fallback`.
"""

import re
from collections.abc import Container
from dataclasses import dataclass

ADD_PRESET, REMOVE_WORKAROUND = "+", "!"


@dataclass(frozen=True, slots=True)
class StrategyExpression:
    """A parsed strategy.

    Attributes:
        base: the strategy or preset.
        added_presets: presets on top of the workarounds.
        removed_workarounds: workarounds that are left out.
    """

    base: str
    added_presets: tuple[str, ...] = ()
    removed_workarounds: tuple[str, ...] = ()

    def unknown(self, strategies: Container[str], presets: Container[str]) -> tuple[str, ...]:
        """Return the words that name nothing."""
        base = () if self.base in strategies or self.base in presets else (self.base,)
        return (*base, *(word for word in (*self.added_presets, *self.removed_workarounds) if word not in presets))


def parse_strategy(text: str) -> StrategyExpression:
    """Parse a strategy expression."""
    base, *parts = re.split(r"(?=[+!])", text)
    more = tuple(part[1:] for part in parts if part.startswith(ADD_PRESET))
    return StrategyExpression(base, more, tuple(part[1:] for part in parts if part.startswith(REMOVE_WORKAROUND)))
