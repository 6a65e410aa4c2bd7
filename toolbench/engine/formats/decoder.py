"""The decoder of all text formats, for streamed and for complete texts; a complete text is one chunk.

The result depends on the text alone, not on its chunks: if the text so far ends with the possible beginning of a
marker, the decoder waits for more text. Decoding takes linear time: apart from markers, text is read again only if a
block, inline code or reasoning in it has no end.
"""

from toolbench.engine.formats.call_extent import BracketExtentScanner, ExtentScanner, MarkerExtentScanner
from toolbench.engine.formats.marker_set import build_marker_set
from toolbench.engine.formats.markers import BACKTICK, get_marker_finder
from toolbench.engine.formats.mentions import (
    is_bare_name,
    is_complete_marker,
    is_marker_mentioned,
    is_prose,
    is_reasoning_end_mentioned,
    is_reasoning_start_mentioned,
    may_be_ordinary_text,
)
from toolbench.engine.formats.parse_state import BlockCalls, ParseState
from toolbench.engine.formats.specification import Block, ParsedBlock, TextFormat, drop_calls_without_name
from toolbench.engine.formats.text_buffer import TextBuffer
from toolbench.engine.formats.types import DecoderEvent, ParsedText, ToolSchemas

MIN_FENCE_BACKTICKS = 3  # backticks that open a code block; fewer open inline code, which cannot span lines


class TextDecoder:
    """A decoder of one answer: call `feed` with its text in chunks of any size, then `close`.

    The events of `feed` are for display while the answer arrives; the result of `close` is final.

    The decoder is a state machine: `_read_next` holds the method of the current state. This method reads on from the
    current position, may choose the next state and returns whether to go on: False if it needs more text, and at the
    end of the text.

    Attributes:
        last_reasoning_start: the offset in the whole text of the last start marker that began reasoning; -1 for none.
    """

    def __init__(self, text_format: TextFormat, offered_tools: ToolSchemas) -> None:
        self._offered_tools = offered_tools
        self._markers = build_marker_set(text_format, tuple(offered_tools.schemas))
        self._treats_tokens_as_markup = text_format.treats_tokens_as_markup
        self._buffer = TextBuffer()
        self._state = ParseState(treats_tokens_as_markup=text_format.treats_tokens_as_markup)
        self._held_parts: list[str] = []  # text of a block, inline code or a call in reasoning; may be read again
        self._scanner: ExtentScanner = MarkerExtentScanner(())
        self._block: Block | None = None
        self._marker = ""  # the marker that the current state decides on; in a block, the text before the block's body
        self._begins_in_line = False  # whether words stand before the start marker on its line
        self._mentioned_end_markers: set[str] = set()  # end markers of reasoning whose start marker was only mentioned
        self._awaited_end = ""  # the marker or backticks that end the current reasoning or code
        # For each run of backticks: the position up to which it is text, because no equal run follows it on its line.
        self._plain_backticks_until: dict[str, int] = {}
        self._absent_end_markers: set[str] = set()  # end markers of reasoning that do not occur in the remaining text
        # Whether end and next markers inside of values are plain text; False once a block had them nowhere else.
        self._ignores_markers_in_values = True
        self._expects_bare_blocks = True
        self._read_next = self._read_text
        self._parsed_text: ParsedText | None = None
        self.last_reasoning_start = -1

    def feed(self, chunk: str) -> tuple[DecoderEvent, ...]:
        """Read a chunk and return the new events; after `close`, the chunk is ignored."""
        if self._parsed_text is None:
            self._buffer.push(chunk)
            self._run()
        return self._state.fetch_events()

    def close(self) -> ParsedText:
        """Return the parsed answer; a second call returns the same."""
        if self._parsed_text is None:
            self._buffer.final = True
            self._run()
            self._parsed_text = self._state.build_result()
        return self._parsed_text

    @property
    def partial(self) -> str:
        """The text so far of a block that has not ended yet; "" outside of blocks."""
        return self._marker + "".join(self._held_parts) if self._block else ""

    def _run(self) -> None:
        while self._read_next():
            pass

    def _read_text(self) -> bool:
        """Read text up to the next marker and choose the state that handles the marker."""
        buffer = self._buffer
        finder = self._markers.finder if self._expects_bare_blocks else self._markers.finder_without_bare_blocks
        match = finder.find(buffer.text, buffer.index, final=buffer.final)
        self._state.add_text(buffer.take(match.start))
        if not match.is_marker:
            return False
        token = buffer.take(match.end)
        if token.startswith(BACKTICK):
            self._open_code(token)
        elif token in self._markers.reasoning_end_by_start or token in self._markers.reasoning_end_markers:
            self._marker, self._read_next = token, self._read_reasoning_marker
        elif token in self._markers.blocks:
            self._marker, self._read_next = token, self._read_start_marker
            self._begins_in_line = self._state.is_within_line()
        elif token in self._markers.dropped_tokens:
            self._state.drop_token(token)
        else:
            self._state.add_text(token)
        return True

    def _read_reasoning_marker(self) -> bool:
        """Begin reasoning, or end reasoning that has no start marker; a marker that is only mentioned is text."""
        token, end_marker = self._marker, self._markers.reasoning_end_by_start.get(self._marker, "")
        is_mentioned = self._is_marker_mentioned() if self._state.is_within_line() else False
        if is_mentioned is None:
            return False
        self._read_next = self._read_text
        previous_character = self._state.previous_character
        if end_marker:
            if is_mentioned or (self._state.is_within_line() and is_reasoning_start_mentioned(previous_character)):
                self._mentioned_end_markers.add(end_marker)
                self._state.add_text(token)
            else:
                self._awaited_end, self._read_next = end_marker, self._read_reasoning
                self.last_reasoning_start = self._buffer.position - len(token)
        elif token in self._mentioned_end_markers or (is_mentioned and is_reasoning_end_mentioned(previous_character)):
            self._state.add_text(token)
        elif not self._state.has_reasoning:
            self._state.end_unopened_reasoning()
        return True

    def _is_marker_mentioned(self) -> bool | None:
        """Return whether the text after the current marker shows a mere mention; None if more text is needed."""
        next_text, is_all_text = self._get_next_text()
        return is_marker_mentioned(self._marker, next_text, self._offered_tools.schemas, is_all_text=is_all_text)

    def _get_next_text(self) -> tuple[str, bool]:
        """Return the beginning of the text after the marker, and whether later chunks cannot make it longer."""
        buffer, max_length = self._buffer, self._markers.next_text_length
        next_text = buffer.text[buffer.index : buffer.index + max_length]
        return next_text, buffer.final or len(next_text) == max_length

    def _open_code(self, backticks: str) -> None:
        self._marker = self._awaited_end = backticks
        if len(backticks) >= MIN_FENCE_BACKTICKS:
            self._read_next = self._read_start_marker
        elif self._buffer.position <= self._plain_backticks_until.get(backticks, 0):
            self._state.add_text(backticks)
        else:
            self._read_next = self._read_inline_code

    def _read_inline_code(self) -> bool:
        """Hold back text up to the backticks that close inline code.

        If the line or the answer ends first, the opening backticks are text, and the held text is decoded again.
        """
        buffer = self._buffer
        match = self._markers.line_or_backticks_finder.find(buffer.text, buffer.index, final=buffer.final)
        self._held_parts.append(buffer.take(match.start))
        if not match.is_marker and not buffer.final:
            return False
        token = buffer.take(match.end) if match.is_marker else ""
        self._held_parts.append(token)
        if token.startswith(BACKTICK) and token != self._awaited_end:
            return True
        self._read_next = self._read_text
        if token == self._awaited_end:
            self._state.add_text(self._awaited_end + self._take_held_text())
        else:
            self._plain_backticks_until[self._awaited_end] = buffer.position
            self._state.add_text(self._awaited_end)
            buffer.put_back(self._take_held_text())
        return True

    def _read_fence(self) -> bool:
        """Read the text of a code fence up to the backticks that close it."""
        buffer = self._buffer
        match = self._markers.backticks_finder.find(buffer.text, buffer.index, final=buffer.final)
        self._state.add_text(buffer.take(match.start))
        if not match.is_marker:
            return False
        token = buffer.take(match.end)
        self._state.add_text(token)
        if len(token) >= len(self._awaited_end):
            self._read_next = self._read_text
        return True

    def _read_reasoning(self) -> bool:
        """Read reasoning up to its end marker or to a start marker of a call inside it."""
        buffer = self._buffer
        finder = self._markers.get_reasoning_finder(self._awaited_end)
        match = finder.find(buffer.text, buffer.index, final=buffer.final)
        self._state.add_reasoning(buffer.take(match.start))
        if not match.is_marker:
            if buffer.final:
                self._state.add_finding("reasoning_unclosed")
            return False
        if buffer.text[match.start : match.end] == self._awaited_end:
            buffer.take(match.end)
            self._state.end_reasoning()
            self._read_next = self._read_text
        elif self._awaited_end in self._absent_end_markers:
            self._read_next = self._read_text
        else:
            self._read_next = self._read_call_in_reasoning
        return True

    def _read_call_in_reasoning(self) -> bool:
        """Hold back a call and the reasoning after it; decode both as calls and text if the reasoning has no end."""
        buffer = self._buffer
        match = get_marker_finder(self._awaited_end).find(buffer.text, buffer.index, final=buffer.final)
        self._held_parts.append(buffer.take(match.start))
        if match.is_marker:
            buffer.take(match.end)
            self._state.add_reasoning(self._take_held_text())
            self._state.end_reasoning()
            self._state.add_finding("call_in_reasoning")
        elif buffer.final:
            self._absent_end_markers.add(self._awaited_end)
            self._state.add_finding("reasoning_unclosed")
            buffer.put_back(self._take_held_text())
        else:
            return False
        self._read_next = self._read_text
        return True

    def _read_start_marker(self) -> bool:
        """Begin the block that the text after a start marker or code fence selects, or add the marker as text."""
        next_text, is_all_text = self._get_next_text()
        is_mentioned = (
            self._is_marker_mentioned() if self._begins_in_line and is_complete_marker(self._marker) else False
        )
        if is_mentioned is None:
            return False
        for block in self._markers.blocks.get(self._marker, ()):
            is_never_mentioned = block.is_certain or block.body_starts  # the text after a mention is no body start
            if (is_mentioned and not is_never_mentioned) or not self._may_begin_here(block):
                continue
            begins_here = block.may_begin_with(next_text, is_all_text=is_all_text)
            if begins_here is None:
                return False
            if begins_here:
                self._begin_block(block)
                return True
        self._state.add_text(self._marker)
        self._read_next = self._read_fence if self._marker.startswith(BACKTICK) else self._read_text
        return True

    def _may_begin_here(self, block: Block) -> bool:
        """Return whether a block may begin at the current position, judged by the text before it."""
        if block.is_bare and not self._expects_bare_blocks:
            return False
        return (not block.must_be_whole_answer or self._state.is_blank) and (
            not block.must_begin_line or self._state.is_at_line_start()
        )

    def _begin_block(self, block: Block) -> None:
        """Begin a block and choose the scanner that finds its end; for a wrapper, only hold its marker."""
        if block.is_wrapper:
            self._state.hold_token(self._marker)
            self._read_next = self._read_text
            return
        self._block, self._read_next = block, self._read_block
        if block.body_starts and not block.has_start_marker_in_body:
            skipped = block.skipped_pattern.match(self._buffer.text, self._buffer.index)
            self._marker += self._buffer.take(skipped.end()) if skipped else ""
        ignores_markers = self._ignores_markers_in_values
        if block.ends_after_values and (ignores_markers or not (block.end_markers or block.next_markers)):
            self._scanner = BracketExtentScanner(
                block.end_markers,
                block.next_markers,
                skipped_markers=block.skipped_markers,
                allows_many_values=block.allows_many_values,
            )
        else:
            value_markers = block.value_markers if ignores_markers else None
            self._scanner = MarkerExtentScanner(block.end_markers, block.next_markers, value_markers)
        if block.has_start_marker_in_body:
            self._buffer.put_back(self._marker)
            self._marker = ""

    def _read_block(self) -> bool:
        """Hold back the text of a block up to its end, then finish the block."""
        buffer, scanner = self._buffer, self._scanner
        reached_index = scanner.scan(buffer.text, buffer.index, final=buffer.final)
        self._held_parts.append(buffer.take(reached_index))
        if scanner.has_ended:
            text, body_length, total_length = self._take_held_text(), scanner.body_length, scanner.total_length
            buffer.put_back(text[total_length:])
            self._finish_block(text[:body_length], text[body_length:total_length], is_truncated=False)
        elif buffer.final:
            self._finish_unended_block(self._take_held_text())
        else:
            return False
        return True

    def _finish_unended_block(self, text: str) -> None:
        """Finish a block when the answer has ended.

        If end or next markers stand inside of its values, the block ends at the first of them, and markers in
        values are no longer ignored. Otherwise the block is truncated. A bare block is always truncated, and no bare
        block is expected after it.
        """
        block = self._block
        assert block is not None
        markers = (*block.end_markers, *block.next_markers)
        ignored_markers = [(index, token) for token in markers if (index := text.find(token)) >= 0]
        if block.is_bare:
            self._expects_bare_blocks = False
            self._finish_block(text, "", is_truncated=True)
        elif ignored_markers and self._ignores_markers_in_values:
            self._ignores_markers_in_values = False
            index, token = min(ignored_markers)
            end_marker = token if token in block.end_markers else ""
            self._buffer.put_back(text[index + len(end_marker) :])
            self._finish_block(text[:index], end_marker, is_truncated=False)
        else:
            self._finish_block(text, "", is_truncated=True)

    def _finish_block(self, body: str, end_marker: str, *, is_truncated: bool) -> None:
        """Read a block and add its calls; add the whole block as text if it counts as text or is unreadable."""
        block = self._block
        assert block is not None
        raw_text = self._marker + body + end_marker
        is_fence_open = self._marker.startswith(BACKTICK) and not end_marker
        self._block, self._read_next = None, self._read_fence if is_fence_open else self._read_text
        parsed_block = drop_calls_without_name(block.reader(body, self._offered_tools, is_truncated=is_truncated))
        if block.is_bare:
            self._finish_bare_block(block, parsed_block, raw_text, is_truncated=is_truncated)
            return
        are_markers_mentioned = block.is_end_marker_optional and end_marker != "" and not body.strip()
        if are_markers_mentioned or self._counts_as_text(block, parsed_block, body, is_truncated=is_truncated):
            self._state.add_text(raw_text)
            return
        self._state.add_reasoning(parsed_block.reasoning)
        self._state.add_text(parsed_block.text)
        is_unclosed = bool(block.end_markers) and not end_marker and not block.is_end_marker_optional
        problem_code = parsed_block.problem_code or ("closer_missing" if parsed_block.calls and is_unclosed else "")
        finding_codes = tuple(filter(None, (*parsed_block.deviation_codes, problem_code)))
        is_unoffered = self._is_unoffered(block, parsed_block)
        text_code = "" if is_bare_name(body) and may_be_ordinary_text(block.start_marker) else "call_unoffered"
        self._state.add_block_calls(BlockCalls(raw_text, parsed_block.calls, finding_codes, is_unoffered, text_code))
        if parsed_block.problem_code and not parsed_block.calls:
            self._state.add_text(raw_text)

    def _is_unoffered(self, block: Block, parsed_block: ParsedBlock) -> bool:
        """Return whether tools are offered and none of the calls of a block names one of them.

        The result is False without calls, and for a block with `is_certain`.
        """
        names = self._offered_tools.schemas
        if not names or not parsed_block.calls or block.is_certain:
            return False
        return not any(call.name in names for call in parsed_block.calls)

    def _counts_as_text(self, block: Block, parsed_block: ParsedBlock, body: str, *, is_truncated: bool) -> bool:
        """Return whether a block with markers is text instead of calls.

        A block is text if it is unreadable prose, or if it needs the name of an offered tool and has none. If no tools
        are offered and the start marker may be ordinary text, calls with arguments within a line are text (with the
        finding `call_unoffered`); so is a name without arguments after text or a call.
        """
        names = self._offered_tools.schemas
        needs_offered_name = block.needs_offered_name and bool(names or self._treats_tokens_as_markup)
        if not parsed_block.calls:
            names_no_tool = needs_offered_name and not any(name in body for name in names)
            return bool(parsed_block.problem_code) and (
                names_no_tool or is_prose(body, names, begins_in_line=self._begins_in_line, is_truncated=is_truncated)
            )
        if block.is_certain or any(call.name in names for call in parsed_block.calls):
            return False
        if needs_offered_name:
            return True
        if names:
            return False  # ParseState decides when it knows whether the answer has words
        is_name_only = is_bare_name(body)
        if not is_name_only and self._begins_in_line and may_be_ordinary_text(block.start_marker):
            self._state.add_finding("call_unoffered")
            return True
        return is_name_only and not self._state.is_blank and may_be_ordinary_text(block.start_marker)

    def _finish_bare_block(self, block: Block, parsed_block: ParsedBlock, raw_text: str, *, is_truncated: bool) -> None:
        """Add the calls of a bare block if it can be read and names only offered tools, else its text."""
        offered_flags = [call.name in self._offered_tools.schemas for call in parsed_block.calls]
        is_mixed = any(offered_flags) and not all(offered_flags)
        problem_code = parsed_block.problem_code or ("call_unreadable" if is_mixed else "")
        if problem_code or not any(offered_flags):
            if problem_code and any(name in raw_text for name in self._offered_tools.schemas):
                self._state.add_finding(problem_code)
            # Only the first character of a truncated block becomes text, because a call may begin after it.
            text_length = 1 if is_truncated and block.has_start_marker_in_body else len(raw_text)
            self._state.add_text(raw_text[:text_length])
            self._buffer.put_back(raw_text[text_length:])
        elif block.must_be_whole_answer:
            self._state.propose_calls(parsed_block.calls, raw_text)
        else:
            self._state.add_block_calls(BlockCalls(raw_text, parsed_block.calls, parsed_block.deviation_codes))

    def _take_held_text(self) -> str:
        text, self._held_parts = "".join(self._held_parts), []
        return text
