"""The set of markers that the decoder searches for in texts of one format."""

from functools import lru_cache

from toolbench.engine.formats.markers import MarkerFinder, get_marker_finder
from toolbench.engine.formats.specification import MAX_HEAD_LENGTH, Block, TextFormat


class MarkerSet:
    """The markers of a text format; some contain the names of the offered tools.

    Attributes:
        blocks: the blocks by start marker.
        head_length: the number of characters after a start marker that decide which block begins.
        dropped: tokens that are removed from the text.
        reasoning: the end marker of reasoning by its start marker.
        closers: the end markers of reasoning.
        markers: finds all markers.
        lasting: finds the markers that remain when blocks without markers of their own are no longer expected.
        ticks: finds runs of backticks.
        line_or_ticks: finds line breaks and runs of backticks.
    """

    def __init__(self, text_format: TextFormat, names: tuple[str, ...]) -> None:
        blocks = (*text_format.blocks, *text_format.named(names), *(text_format.bare(names) if names else ()))
        self.blocks: dict[str, list[Block]] = {}
        for block in blocks:
            self.blocks.setdefault(block.opener, []).append(block)
        self.head_length = MAX_HEAD_LENGTH + max((len(start) for block in blocks for start in block.starts), default=0)
        self.dropped = frozenset(text_format.dropped)
        self.reasoning = dict(text_format.reasoning)
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
def build_marker_set(text_format: TextFormat, names: tuple[str, ...]) -> MarkerSet:
    """Return the markers of a text format for the tools with these names. Results are cached."""
    return MarkerSet(text_format, names)
