"""All that the decoder looks for in a format's texts."""

from functools import lru_cache

from toolbench.engine.formats.definition import HEAD, Block, Format
from toolbench.engine.formats.markers import Markers, markers_of


class Vocabulary:
    """The markers of a format with the tools' names: blocks by opener, tokens to drop, reasoning by opener. `lasting`
    are those that stay when no bare block is awaited any more; `head` is how much behind an opener tells the block."""

    def __init__(self, form: Format, names: tuple[str, ...]) -> None:
        blocks = (*form.blocks, *form.named(names), *(form.bare(names) if names else ()))
        self.blocks: dict[str, list[Block]] = {}
        for block in blocks:
            self.blocks.setdefault(block.opener, []).append(block)
        self.head = HEAD + max((len(start) for block in blocks for start in block.starts), default=0)
        self.dropped = frozenset(form.dropped)
        self.reasoning = dict(form.reasoning)
        self.closers = frozenset(self.reasoning.values())
        self._openers = tuple(block.opener for block in blocks if not block.bare)
        others = [*self.dropped, *self.reasoning, *self.closers]
        self.markers = Markers([*self.blocks, *others], ticks=True)
        self.lasting = Markers([*self._openers, *others], ticks=True)
        self.ticks = Markers([], ticks=True)
        self.line_or_ticks = Markers(["\n"], ticks=True)

    def thinking(self, closer: str) -> Markers:
        """The end of reasoning, and what opens a call before it."""
        return markers_of(closer, *self._openers)


@lru_cache(maxsize=256)
def vocabulary(form: Format, names: tuple[str, ...]) -> Vocabulary:
    """Made once for a format and a set of tools."""
    return Vocabulary(form, names)
