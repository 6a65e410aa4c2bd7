"""The decoder of all text formats. A complete text is decoded as a stream with one chunk.

The result depends on the text alone, not on its chunks: if the text so far ends with the possible beginning of a
marker, the decoder waits for more text. No part is read more than a few times: a block without an end marker is read
twice.
"""

from toolbench.engine.formats.call_extent import BracketExtent, ExtentScanner, MarkerExtent
from toolbench.engine.formats.marker_set import build_marker_set
from toolbench.engine.formats.markers import TICKS, get_marker_finder
from toolbench.engine.formats.mentions import (
    is_bare_name,
    is_complete_marker,
    is_end_in_words,
    is_mentioned,
    is_natural,
    is_prose,
    is_start_in_words,
)
from toolbench.engine.formats.parse_state import ParsedCalls, ParseState
from toolbench.engine.formats.specification import Block, ParsedBlock, TextFormat, drop_unnamed_calls
from toolbench.engine.formats.text_buffer import TextBuffer
from toolbench.engine.formats.types import DecoderEvent, ParsedText, ToolSchemas

MIN_FENCE_TICKS = 3  # backticks that open a code block; fewer open inline code, which ends with its line


class TextDecoder:
    """A decoder of one answer: call `feed` with its text in chunks of any size, then `close`.

    The events of `feed` are for display while the answer arrives; the result of `close` is final.
    """

    def __init__(self, form: TextFormat, known: ToolSchemas) -> None:
        self._known = known
        self._markers = build_marker_set(form, tuple(known.schemas))
        self._buffer, self._state = TextBuffer(), ParseState(careful=form.careful)
        self._held_text: list[str] = []  # text of the current block or code, which may have to be read again
        self._scanner: ExtentScanner = MarkerExtent(())
        self._block: Block | None = None
        self._opener = ""
        self._careful = form.careful
        self._begins_in_line = False  # other text stands before the start marker on its line
        self._mentioned_closers: set[str] = set()  # end markers of reasoning whose start marker was only mentioned
        self._inside_closer = (
            ""  # the end marker of the current reasoning, or the backticks that opened the current code
        )
        self._plain_ticks_until: dict[
            str, float
        ] = {}  # by run of backticks: up to this position in the text they are plain text
        self._missing_closers: set[str] = set()  # end markers of reasoning that do not occur in the remaining text
        self._respects_quotes = True  # whether quotes and guards hide end markers; False after a block had no end
        self._expects_bare = True  # whether blocks without markers are still expected
        self._step = self._in_text
        self._parsed: ParsedText | None = None

    def feed(self, chunk: str) -> tuple[DecoderEvent, ...]:
        """Read a chunk and return the events that became certain; after `close` the chunk is ignored."""
        if self._parsed is None:
            self._buffer.push(chunk)
            self._run()
        return self._state.fetch()

    def close(self) -> ParsedText:
        """Return the parsed answer; a second call returns the same."""
        if self._parsed is None:
            self._buffer.final = True
            self._run()
            self._parsed = self._state.parsed()
        return self._parsed

    @property
    def partial(self) -> str:
        """The text so far of a call that is not complete yet; "" outside of calls."""
        return self._opener + "".join(self._held_text) if self._block else ""

    def _run(self) -> None:
        while self._step():
            pass

    def _in_text(self) -> bool:
        """Read text up to the next marker and choose the step for the marker.

        Returns:
            False if the step needs more text, or at the end of the text. All steps return this.
        """
        buffer = self._buffer
        markers = self._markers.markers if self._expects_bare else self._markers.lasting
        found = markers.find(buffer.text, buffer.at, final=buffer.final)
        self._state.say(buffer.take(found.start))
        if not found.is_marker:
            return False
        token = buffer.take(found.end)
        if token.startswith(TICKS):
            self._open_code(token)
        elif token in self._markers.reasoning or token in self._markers.closers:
            self._opener, self._step = token, self._at_reasoning_marker
        elif token in self._markers.blocks:
            self._opener, self._step = token, self._at_start_marker
            self._begins_in_line = self._state.in_line()
        elif token in self._markers.dropped:
            self._state.drop(token)
        else:
            self._state.say(token)
        return True

    def _at_reasoning_marker(self) -> bool:
        """Decide whether a marker opens or closes reasoning, or is only mentioned in the text."""
        token, closer = self._opener, self._markers.reasoning.get(self._opener, "")
        mentioned = self._is_mentioned() if self._state.in_line() else False
        if mentioned is None:
            return False
        self._step = self._in_text
        before = self._state.last
        if closer:
            if mentioned or (self._state.in_line() and is_start_in_words(before)):
                self._mentioned_closers.add(closer)
                self._state.say(token)
            else:
                self._inside_closer, self._step = closer, self._in_reasoning
        elif token in self._mentioned_closers or (mentioned and is_end_in_words(before)):
            self._state.say(token)
        elif not self._state.thought:
            self._state.end_thought()
        return True

    def _is_mentioned(self) -> bool | None:
        buffer = self._buffer
        head = buffer.text[buffer.at : buffer.at + self._markers.head_length]
        complete = buffer.final or len(head) == self._markers.head_length
        return is_mentioned(self._opener, head, self._known.schemas, complete=complete)

    def _open_code(self, ticks: str) -> None:
        self._opener = self._inside_closer = ticks
        if len(ticks) >= MIN_FENCE_TICKS:
            self._step = self._at_start_marker
        elif self._buffer.position <= self._plain_ticks_until.get(ticks, 0):
            self._state.say(ticks)
        else:
            self._step = self._in_inline_code

    def _in_inline_code(self) -> bool:
        """Hold text back to the end of the line, as backticks that are not closed on their line are plain text."""
        buffer = self._buffer
        found = self._markers.line_or_ticks.find(buffer.text, buffer.at, final=buffer.final)
        self._held_text.append(buffer.take(found.start))
        if not found.is_marker and not buffer.final:
            return False
        token = buffer.take(found.end) if found.is_marker else ""
        self._held_text.append(token)
        if token.startswith(TICKS) and token != self._inside_closer:
            return True
        self._step = self._in_text
        if token == self._inside_closer:
            self._state.say(self._inside_closer + self._release())
        else:
            self._plain_ticks_until[self._inside_closer] = buffer.position
            self._state.say(self._inside_closer)
            buffer.put_back(self._release())
        return True

    def _in_fence(self) -> bool:
        buffer = self._buffer
        found = self._markers.ticks.find(buffer.text, buffer.at, final=buffer.final)
        self._state.say(buffer.take(found.start))
        if not found.is_marker:
            return False
        token = buffer.take(found.end)
        self._state.say(token)
        if len(token) >= len(self._inside_closer):
            self._step = self._in_text
        return True

    def _in_reasoning(self) -> bool:
        """Read reasoning up to its end marker or to a call inside it."""
        buffer = self._buffer
        found = self._markers.get_reasoning_markers(self._inside_closer).find(
            buffer.text, buffer.at, final=buffer.final
        )
        self._state.think(buffer.take(found.start))
        if not found.is_marker:
            if buffer.final:
                self._state.note("reasoning_unclosed")
            return False
        if buffer.text[found.start : found.end] == self._inside_closer:
            buffer.take(found.end)
            self._state.close_thought()
            self._step = self._in_text
        elif self._inside_closer in self._missing_closers:
            self._step = self._in_text
        else:
            self._step = self._in_call_inside_reasoning
        return True

    def _in_call_inside_reasoning(self) -> bool:
        """Hold back a call that begins inside reasoning: it does not count if the reasoning is closed later."""
        buffer = self._buffer
        found = get_marker_finder(self._inside_closer).find(buffer.text, buffer.at, final=buffer.final)
        self._held_text.append(buffer.take(found.start))
        if found.is_marker:
            buffer.take(found.end)
            self._state.think(self._release())
            self._state.close_thought()
            self._state.note("call_in_reasoning")
        elif buffer.final:
            self._missing_closers.add(self._inside_closer)
            self._state.note("reasoning_unclosed")
            buffer.put_back(self._release())
        else:
            return False
        self._step = self._in_text
        return True

    def _at_start_marker(self) -> bool:
        """Decide by the text after a start marker which block begins there, if any."""
        buffer = self._buffer
        head = buffer.text[buffer.at : buffer.at + self._markers.head_length]
        complete = buffer.final or len(head) == self._markers.head_length
        mentioned = self._is_mentioned() if self._begins_in_line and is_complete_marker(self._opener) else False
        if mentioned is None:
            return False
        for block in self._markers.blocks.get(self._opener, ()):
            if (mentioned and not (block.certain or block.starts)) or not self._accept_block(block):
                continue
            fits = block.fits(head, complete=complete)
            if fits is None:
                return False
            if fits:
                self._begin_block(block)
                return True
        self._state.say(self._opener)
        self._step = self._in_fence if self._opener.startswith(TICKS) else self._in_text
        return True

    def _accept_block(self, block: Block) -> bool:
        if block.bare and not self._expects_bare:
            return False
        return (not block.whole or self._state.blank) and (not block.at_line or self._state.at_line())

    def _begin_block(self, block: Block) -> None:
        """Begin a block after its start marker and choose the scanner that finds its end."""
        if block.wrapper:
            self._state.wait(self._opener)
            self._step = self._in_text
            return
        self._block, self._step = block, self._in_block
        if block.starts and not block.inner:
            skipped = block.skip.match(self._buffer.text, self._buffer.at)
            self._opener += self._buffer.take(skipped.end()) if skipped else ""
        if block.values and (self._respects_quotes or not (block.closers or block.enders)):
            self._scanner = BracketExtent(block.closers, block.enders, passed=block.passed, is_list=block.many)
        else:
            self._scanner = MarkerExtent(block.closers, block.enders, block.guard if self._respects_quotes else None)
        if block.inner:
            self._buffer.put_back(self._opener)
            self._opener = ""

    def _in_block(self) -> bool:
        buffer, scanner = self._buffer, self._scanner
        reached = scanner.scan(buffer.text, buffer.at, final=buffer.final)
        self._held_text.append(buffer.take(reached))
        if scanner.ended:
            text = self._release()
            buffer.put_back(text[scanner.total :])
            self._finish_block(text[: scanner.body], text[scanner.body : scanner.total], cut=False)
        elif buffer.final:
            self._finish_unended(self._release())
        else:
            return False
        return True

    def _finish_unended(self, text: str) -> None:
        """Finish a block that has no end in the whole text.

        If its text contains an end marker that was hidden by quotes or guards, the block ends there. From then on
        quotes and guards do not hide end markers.
        """
        block = self._block
        assert block is not None
        ends = [(index, token) for token in (*block.closers, *block.enders) if (index := text.find(token)) >= 0]
        if block.bare:
            self._expects_bare = False
            self._finish_block(text, "", cut=True)
        elif ends and self._respects_quotes:
            self._respects_quotes = False
            index, token = min(ends)
            closer = token if token in block.closers else ""
            self._buffer.put_back(text[index + len(closer) :])
            self._finish_block(text[:index], closer, cut=False)
        else:
            self._finish_block(text, "", cut=True)

    def _finish_block(self, body: str, closer: str, *, cut: bool) -> None:
        """Read a block whose end is known, and add its calls or, if it is only mentioned, its text."""
        block = self._block
        assert block is not None
        raw = self._opener + body + closer
        in_fence = self._opener.startswith(TICKS) and not closer
        self._block, self._step = None, self._in_fence if in_fence else self._in_text
        reading = drop_unnamed_calls(block.read(body, self._known, cut=cut))
        if block.bare:
            self._finish_bare(block, reading, raw, cut=cut)
            return
        are_markers_named = (
            block.closer_optional and closer != "" and not body.strip()
        )  # both markers without a body are mentions in a sentence
        if are_markers_named or self._is_text(block, reading, body, cut=cut):
            self._state.say(raw)
            return
        self._state.think(reading.reasoning)
        self._state.say(reading.text)
        is_unclosed = bool(block.closers) and not closer and not block.closer_optional
        notes = (*reading.notes, reading.problem or ("closer_missing" if reading.calls and is_unclosed else ""))
        is_unoffered = self._is_unoffered(block, reading)
        refusal_code = "" if is_bare_name(body) and is_natural(block.opener) else "call_unoffered"
        self._state.read(ParsedCalls(raw, reading.calls, tuple(filter(None, notes)), is_unoffered, refusal_code))
        if reading.problem and not reading.calls:
            self._state.say(raw)

    def _is_unoffered(self, block: Block, reading: ParsedBlock) -> bool:
        """Return whether tools are offered and none of the calls of a block names one of them."""
        names = self._known.schemas
        return bool(names and reading.calls) and not (
            block.certain or any(call.name in names for call in reading.calls)
        )

    def _is_text(self, block: Block, reading: ParsedBlock, body: str, *, cut: bool) -> bool:
        """Return whether a block with markers is only mentioned in the text.

        Within other text, only calls of offered tools count.
        """
        names = self._known.schemas
        needs_offered_name = block.offered and bool(names or self._careful)
        if not reading.calls:
            names_no_tool = needs_offered_name and not any(name in body for name in names)
            return bool(reading.problem) and (
                names_no_tool or is_prose(body, names, in_line=self._begins_in_line, cut=cut)
            )
        if block.certain or any(call.name in names for call in reading.calls):
            return False
        if needs_offered_name or names:
            return needs_offered_name
        is_name_only = is_bare_name(body)
        if not is_name_only and self._begins_in_line and is_natural(block.opener):
            self._state.note("call_unoffered")
            return True
        return is_name_only and not self._state.blank and is_natural(block.opener)

    def _finish_bare(self, block: Block, reading: ParsedBlock, raw: str, *, cut: bool) -> None:
        are_offered = [call.name in self._known.schemas for call in reading.calls]
        problem = reading.problem or ("" if all(are_offered) or not any(are_offered) else "call_unreadable")
        if problem or not any(are_offered):
            if problem and any(name in raw for name in self._known.schemas):
                self._state.note(problem)
            text_length = 1 if cut and block.inner else len(raw)
            self._state.say(raw[:text_length])
            self._buffer.put_back(raw[text_length:])
        elif block.whole:
            self._state.propose(reading.calls, raw)
        else:
            self._state.read(ParsedCalls(raw, reading.calls, reading.notes))

    def _release(self) -> str:
        text, self._held_text = "".join(self._held_text), []
        return text
