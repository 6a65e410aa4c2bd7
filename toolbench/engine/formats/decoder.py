"""The decoder of all text formats. A whole text is decoded as a stream with one chunk.

The result depends on the text alone, not on its chunks: the decoder waits where the end of the text so far may begin a
marker. It reads the text a limited number of times: a block that has no end marker is read a second time.
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
    """A decoder of one answer: feed its text in chunks of any size, then close it.

    Both return what is new; the result of `close` is authoritative.
    """

    def __init__(self, form: TextFormat, known: ToolSchemas) -> None:
        self._known = known
        self._words = build_marker_set(form, tuple(known.schemas))
        self._tape, self._out = TextBuffer(), ParseState(careful=form.careful)
        self._held: list[str] = []  # text that was read and may have to be put back
        self._scanner: ExtentScanner = MarkerExtent(())
        self._block: Block | None = None
        self._opener = ""
        self._careful = form.careful
        self._in_line = False  # words stand before the start marker on its line
        self._spoken_of: set[str] = set()  # end markers of reasoning whose start marker was a word of the text
        self._inside = ""  # the end marker of the current reasoning, or the backticks of the current code
        self._plain_until: dict[str, float] = {}  # by backticks: the end of a line without closing ones
        self._unclosed: set[str] = set()  # end markers of reasoning that the rest of the text does not have
        self._trusting = True  # quotes and guards are respected until a block has no end
        self._bare = True
        self._step = self._in_text
        self._parsed: ParsedText | None = None

    def feed(self, chunk: str) -> tuple[DecoderEvent, ...]:
        """Read a chunk and return the events that it made certain; after `close` nothing is read."""
        if self._parsed is None:
            self._tape.push(chunk)
            self._run()
        return self._out.fetch()

    def close(self) -> ParsedText:
        """Return the parsed answer; a second call returns the same."""
        if self._parsed is None:
            self._tape.final = True
            self._run()
            self._parsed = self._out.parsed()
        return self._parsed

    @property
    def partial(self) -> str:
        """The text so far of an incomplete call; "" outside of calls."""
        return self._opener + "".join(self._held) if self._block else ""

    def _run(self) -> None:
        while self._step():
            pass

    def _in_text(self) -> bool:
        tape = self._tape
        markers = self._words.markers if self._bare else self._words.lasting
        found = markers.find(tape.text, tape.at, final=tape.final)
        self._out.say(tape.take(found.start))
        if not found.is_marker:
            return False
        word = tape.take(found.end)
        if word.startswith(TICKS):
            self._open_code(word)
        elif word in self._words.reasoning or word in self._words.closers:
            self._opener, self._step = word, self._at_thought
        elif word in self._words.blocks:
            self._opener, self._step = word, self._at_head
            self._in_line = self._out.in_line()
        elif word in self._words.dropped:
            self._out.drop(word)
        else:
            self._out.say(word)
        return True

    def _at_thought(self) -> bool:
        """Decide whether a marker opens or closes reasoning, or is only a word of the text around it."""
        word, closer = self._opener, self._words.reasoning.get(self._opener, "")
        mentioned = self._is_mentioned() if self._out.in_line() else False
        if mentioned is None:
            return False
        self._step = self._in_text
        before = self._out.last
        if closer:
            if mentioned or (self._out.in_line() and is_start_in_words(before)):
                self._spoken_of.add(closer)
                self._out.say(word)
            else:
                self._inside, self._step = closer, self._in_reasoning
        elif word in self._spoken_of or (mentioned and is_end_in_words(before)):
            self._out.say(word)
        elif not self._out.thought:
            self._out.end_thought()
        return True

    def _is_mentioned(self) -> bool | None:
        tape = self._tape
        head = tape.text[tape.at : tape.at + self._words.head]
        complete = tape.final or len(head) == self._words.head
        return is_mentioned(self._opener, head, self._known.schemas, complete=complete)

    def _open_code(self, ticks: str) -> None:
        self._opener = self._inside = ticks
        if len(ticks) >= MIN_FENCE_TICKS:
            self._step = self._at_head
        elif self._tape.place <= self._plain_until.get(ticks, 0):
            self._out.say(ticks)
        else:
            self._step = self._in_inline_code

    def _in_inline_code(self) -> bool:
        """Hold text back to the end of the line: backticks without a partner on their line are plain text."""
        tape = self._tape
        found = self._words.line_or_ticks.find(tape.text, tape.at, final=tape.final)
        self._held.append(tape.take(found.start))
        if not found.is_marker and not tape.final:
            return False
        word = tape.take(found.end) if found.is_marker else ""
        self._held.append(word)
        if word.startswith(TICKS) and word != self._inside:
            return True
        self._step = self._in_text
        if word == self._inside:
            self._out.say(self._inside + self._release())
        else:
            self._plain_until[self._inside] = tape.place
            self._out.say(self._inside)
            tape.put_back(self._release())
        return True

    def _in_fence(self) -> bool:
        tape = self._tape
        found = self._words.ticks.find(tape.text, tape.at, final=tape.final)
        self._out.say(tape.take(found.start))
        if not found.is_marker:
            return False
        word = tape.take(found.end)
        self._out.say(word)
        if len(word) >= len(self._inside):
            self._step = self._in_text
        return True

    def _in_reasoning(self) -> bool:
        tape = self._tape
        found = self._words.get_reasoning_markers(self._inside).find(tape.text, tape.at, final=tape.final)
        self._out.think(tape.take(found.start))
        if not found.is_marker:
            if tape.final:
                self._out.note("reasoning_unclosed")
            return False
        if tape.text[found.start : found.end] == self._inside:
            tape.take(found.end)
            self._out.close_thought()
            self._step = self._in_text
        elif self._inside in self._unclosed:
            self._step = self._in_text
        else:
            self._step = self._in_call_inside_reasoning
        return True

    def _in_call_inside_reasoning(self) -> bool:
        """Hold back a call that begins inside reasoning: it does not count if the reasoning is closed later."""
        tape = self._tape
        found = get_marker_finder(self._inside).find(tape.text, tape.at, final=tape.final)
        self._held.append(tape.take(found.start))
        if found.is_marker:
            tape.take(found.end)
            self._out.think(self._release())
            self._out.close_thought()
            self._out.note("call_in_reasoning")
        elif tape.final:
            self._unclosed.add(self._inside)
            self._out.note("reasoning_unclosed")
            tape.put_back(self._release())
        else:
            return False
        self._step = self._in_text
        return True

    def _at_head(self) -> bool:
        """Decide by the text behind a start marker which block begins there, if any."""
        tape = self._tape
        head = tape.text[tape.at : tape.at + self._words.head]
        complete = tape.final or len(head) == self._words.head
        mentioned = self._is_mentioned() if self._in_line and is_complete_marker(self._opener) else False
        if mentioned is None:
            return False
        for block in self._words.blocks.get(self._opener, ()):
            if (mentioned and not (block.certain or block.starts)) or not self._accept_block(block):
                continue
            fits = block.fits(head, complete=complete)
            if fits is None:
                return False
            if fits:
                self._begin(block)
                return True
        self._out.say(self._opener)
        self._step = self._in_fence if self._opener.startswith(TICKS) else self._in_text
        return True

    def _accept_block(self, block: Block) -> bool:
        if block.bare and not self._bare:
            return False
        return (not block.whole or self._out.blank) and (not block.at_line or self._out.at_line())

    def _begin(self, block: Block) -> None:
        if block.wrapper:
            self._out.wait(self._opener)
            self._step = self._in_text
            return
        self._block, self._step = block, self._in_block
        if block.starts and not block.inner:
            skipped = block.skip.match(self._tape.text, self._tape.at)
            self._opener += self._tape.take(skipped.end()) if skipped else ""
        if block.values and (self._trusting or not (block.closers or block.enders)):
            self._scanner = BracketExtent(block.closers, block.enders, passed=block.passed, is_list=block.many)
        else:
            self._scanner = MarkerExtent(block.closers, block.enders, block.guard if self._trusting else None)
        if block.inner:
            self._tape.put_back(self._opener)
            self._opener = ""

    def _in_block(self) -> bool:
        tape, scanner = self._tape, self._scanner
        reached = scanner.scan(tape.text, tape.at, final=tape.final)
        self._held.append(tape.take(reached))
        if scanner.ended:
            text = self._release()
            tape.put_back(text[scanner.total :])
            self._finish(text[: scanner.body], text[scanner.body : scanner.total], cut=False)
        elif tape.final:
            self._without_end(self._release())
        else:
            return False
        return True

    def _without_end(self, text: str) -> None:
        """Finish a block that has no end in the whole text.

        If it holds an end marker, the block ends there. This happens once: from then on quotes and guards are not
        respected.
        """
        block = self._block
        assert block is not None
        ends = [(place, word) for word in (*block.closers, *block.enders) if (place := text.find(word)) >= 0]
        if block.bare:
            self._bare = False
            self._finish(text, "", cut=True)
        elif ends and self._trusting:
            self._trusting = False
            place, word = min(ends)
            closer = word if word in block.closers else ""
            self._tape.put_back(text[place + len(closer) :])
            self._finish(text[:place], closer, cut=False)
        else:
            self._finish(text, "", cut=True)

    def _finish(self, body: str, closer: str, *, cut: bool) -> None:
        block = self._block
        assert block is not None
        raw = self._opener + body + closer
        in_fence = self._opener.startswith(TICKS) and not closer
        self._block, self._step = None, self._in_fence if in_fence else self._in_text
        reading = drop_unnamed_calls(block.read(body, self._known, cut=cut))
        if block.bare:
            self._finish_bare(block, reading, raw, cut=cut)
            return
        is_named = block.closer_optional and closer != "" and not body.strip()  # a sentence names both markers
        if is_named or self._is_text(block, reading, body, cut=cut):
            self._out.say(raw)
            return
        self._out.think(reading.reasoning)
        self._out.say(reading.text)
        unclosed = bool(block.closers) and not closer and not block.closer_optional
        notes = (*reading.notes, reading.problem or ("closer_missing" if reading.calls and unclosed else ""))
        unsure = self._is_unsure(block, reading)
        refused = "" if is_bare_name(body) and is_natural(block.opener) else "call_unoffered"
        self._out.read(ParsedCalls(raw, reading.calls, tuple(filter(None, notes)), unsure, refused))
        if reading.problem and not reading.calls:
            self._out.say(raw)

    def _is_unsure(self, block: Block, reading: ParsedBlock) -> bool:
        """Return whether tools are offered and the calls of a block are of none of them."""
        names = self._known.schemas
        return bool(names and reading.calls) and not (
            block.certain or any(call.name in names for call in reading.calls)
        )

    def _is_text(self, block: Block, reading: ParsedBlock, body: str, *, cut: bool) -> bool:
        """Return whether a block with markers is only mentioned in the text.

        Between words, only calls of offered tools count.
        """
        names = self._known.schemas
        only_offered = block.offered and bool(names or self._careful)
        if not reading.calls:
            unnamed = only_offered and not any(name in body for name in names)
            return bool(reading.problem) and (unnamed or is_prose(body, names, in_line=self._in_line, cut=cut))
        if block.certain or any(call.name in names for call in reading.calls):
            return False
        if only_offered or names:
            return only_offered
        bare_name = is_bare_name(body)
        if not bare_name and self._in_line and is_natural(block.opener):
            self._out.note("call_unoffered")
            return True
        return bare_name and not self._out.blank and is_natural(block.opener)

    def _finish_bare(self, block: Block, reading: ParsedBlock, raw: str, *, cut: bool) -> None:
        known = [call.name in self._known.schemas for call in reading.calls]
        problem = reading.problem or ("" if all(known) or not any(known) else "call_unreadable")
        if problem or not any(known):
            if problem and any(name in raw for name in self._known.schemas):
                self._out.note(problem)
            kept = 1 if cut and block.inner else len(raw)
            self._out.say(raw[:kept])
            self._tape.put_back(raw[kept:])
        elif block.whole:
            self._out.propose(reading.calls, raw)
        else:
            self._out.read(ParsedCalls(raw, reading.calls, reading.notes))

    def _release(self) -> str:
        held, self._held = "".join(self._held), []
        return held
