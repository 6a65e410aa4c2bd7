"""The set of markers that the decoder searches for in texts of one format."""

from functools import lru_cache

from toolbench.engine.formats.markers import MarkerFinder, get_marker_finder
from toolbench.engine.formats.specification import MIN_NEXT_TEXT_LENGTH, Block, TextFormat


class MarkerSet:
    """The markers of a text format; some contain the names of the offered tools.

    Attributes:
        blocks: the blocks by start marker.
        next_text_length: the number of characters after a start marker that are read to decide which block begins.
        dropped_tokens: tokens that are removed from the text.
        reasoning_end_by_start: the end marker of reasoning by its start marker.
        reasoning_end_markers: the end markers of reasoning.
        finder: finds all markers and runs of backticks.
        finder_without_bare_blocks: finds the same, except start markers of bare blocks.
        backticks_finder: finds runs of backticks.
        line_or_backticks_finder: finds line breaks and runs of backticks.
    """

    def __init__(self, text_format: TextFormat, names: tuple[str, ...]) -> None:
        blocks = (
            *text_format.blocks,
            *text_format.build_named_blocks(names),
            *(text_format.build_bare_blocks(names) if names else ()),
        )
        self.blocks: dict[str, list[Block]] = {}
        for block in blocks:
            self.blocks.setdefault(block.start_marker, []).append(block)
        self.next_text_length = MIN_NEXT_TEXT_LENGTH + max(
            (len(start) for block in blocks for start in block.body_starts), default=0
        )
        self.dropped_tokens = frozenset(text_format.dropped_tokens)
        self.reasoning_end_by_start = dict(text_format.reasoning_markers)
        self.reasoning_end_markers = frozenset(self.reasoning_end_by_start.values())
        self._start_markers = tuple(block.start_marker for block in blocks if not block.is_bare)
        other_markers = [*self.dropped_tokens, *self.reasoning_end_by_start, *self.reasoning_end_markers]
        self.finder = MarkerFinder([*self.blocks, *other_markers], finds_backticks=True)
        self.finder_without_bare_blocks = MarkerFinder([*self._start_markers, *other_markers], finds_backticks=True)
        self.backticks_finder = MarkerFinder([], finds_backticks=True)
        self.line_or_backticks_finder = MarkerFinder(["\n"], finds_backticks=True)

    def get_reasoning_finder(self, end_marker: str) -> MarkerFinder:
        """Return a finder of this end marker and of the start markers of blocks that are not bare."""
        return get_marker_finder(end_marker, *self._start_markers)

    def build_key(self, text: str) -> tuple[object, ...]:
        """Return everything in the set that matters for a text; sets with equal keys decode it in the same way.

        A key is not hashable.
        """
        reasoning = self.reasoning_end_by_start.items()
        return (
            tuple((start, tuple(blocks)) for start, blocks in self.blocks.items() if start in text),
            frozenset(token for token in self.dropped_tokens if token in text),
            frozenset((start, end) for start, end in reasoning if start in text or end in text),
            self.next_text_length,
        )


@lru_cache(maxsize=256)
def build_marker_set(text_format: TextFormat, names: tuple[str, ...]) -> MarkerSet:
    """Return the markers of a text format for the tools with these names. Results are cached."""
    return MarkerSet(text_format, names)
