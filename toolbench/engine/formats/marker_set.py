"""All that the decoder looks for in a format's texts."""

from functools import lru_cache

from toolbench.engine.formats.markers import MarkerFinder, get_marker_finder
from toolbench.engine.formats.specification import MAX_HEAD_LENGTH, Block, TextFormat


class MarkerSet:
    """The markers of a format with the tools' names: blocks by opener, tokens to drop, reasoning by opener. `lasting`
    are those that stay when no bare block is awaited any more; `head` is how much behind an opener tells the block."""

    def __init__(self, form: TextFormat, names: tuple[str, ...]) -> None:
        blocks = (*form.blocks, *form.named(names), *(form.bare(names) if names else ()))
        self.blocks: dict[str, list[Block]] = {}
        for block in blocks:
            self.blocks.setdefault(block.opener, []).append(block)
        self.head = MAX_HEAD_LENGTH + max((len(start) for block in blocks for start in block.starts), default=0)
        self.dropped = frozenset(form.dropped)
        self.reasoning = dict(form.reasoning)
        self.closers = frozenset(self.reasoning.values())
        self._openers = tuple(block.opener for block in blocks if not block.bare)
        others = [*self.dropped, *self.reasoning, *self.closers]
        self.markers = MarkerFinder([*self.blocks, *others], ticks=True)
        self.lasting = MarkerFinder([*self._openers, *others], ticks=True)
        self.ticks = MarkerFinder([], ticks=True)
        self.line_or_ticks = MarkerFinder(["\n"], ticks=True)

    def get_reasoning_markers(self, closer: str) -> MarkerFinder:
        """The end of reasoning, and what opens a call before it."""
        return get_marker_finder(closer, *self._openers)


@lru_cache(maxsize=256)
def build_marker_set(form: TextFormat, names: tuple[str, ...]) -> MarkerSet:
    """Made once for a format and a set of tools."""
    return MarkerSet(form, names)
