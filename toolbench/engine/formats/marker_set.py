"""The set of markers that the decoder searches for in texts of one format."""

from functools import lru_cache

from toolbench.engine.formats.markers import MarkerFinder, get_marker_finder
from toolbench.engine.formats.specification import MAX_HEAD_LENGTH, Block, TextFormat


class MarkerSet:
    """The markers of a text format with the names of the offered tools.

    Attributes:
        blocks: the blocks by start marker.
        head: the number of characters behind a start marker that decide which block begins.
        dropped: tokens that are removed from the text.
        reasoning: the end marker of reasoning by its start marker.
        closers: the end markers of reasoning.
        markers: finds all markers.
        lasting: finds the markers that remain when blocks without markers of their own are no longer expected.
        ticks: finds runs of backticks.
        line_or_ticks: finds line breaks and runs of backticks.
    """

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
        additional = [*self.dropped, *self.reasoning, *self.closers]
        self.markers = MarkerFinder([*self.blocks, *additional], ticks=True)
        self.lasting = MarkerFinder([*self._openers, *additional], ticks=True)
        self.ticks = MarkerFinder([], ticks=True)
        self.line_or_ticks = MarkerFinder(["\n"], ticks=True)

    def get_reasoning_markers(self, closer: str) -> MarkerFinder:
        """Return a finder of the end marker of reasoning and of the start markers of calls."""
        return get_marker_finder(closer, *self._openers)


@lru_cache(maxsize=256)
def build_marker_set(form: TextFormat, names: tuple[str, ...]) -> MarkerSet:
    """Return the markers of a format and a set of tools; they are cached."""
    return MarkerSet(form, names)
