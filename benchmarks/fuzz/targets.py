"""Targets of the fuzzer: the functions that read what a model or an endpoint wrote.

Three promises are checked: a target raises no exception, a text in chunks gives the same result as the whole text, and
time grows no faster than the length of the text.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import AnyStr

from toolbench.engine.arguments import read_arguments
from toolbench.engine.errors import InvalidJsonError, MalformedAnswerError
from toolbench.engine.events import AnswerDecoder
from toolbench.engine.formats import list_format_names, parse, stream
from toolbench.engine.formats.literals import read_value
from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.partial_json import read_partial
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.strict_json import write_json
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer
from toolbench.engine.wire_formats.sse import EventReader
from toolbench.engine.wire_formats.stream_reader import StreamDecoder

TOOLS = (
    ToolDefinition("ping", "Says it is there.", {"type": "object", "properties": {}}),
    ToolDefinition(
        "get_weather",
        "The weather.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "wide": {"type": "boolean"},
                "at": {"type": "object"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city"],
        },
    ),
)
FORMATS = list_format_names()
GROWTH_CHECK_INTERVAL = 64  # growth is checked for one in so many of the inputs whose second byte is 1
SHORT_REPEATS, LONG_REPEATS = 16, 128  # of a text, to compare the times of a short and a long one
SLOW_SECONDS = 0.2  # a long text that takes less is not compared
MAX_GROWTH = 3 * LONG_REPEATS / SHORT_REPEATS
_SETUP = prepare_turns("m", resolve_policy([]).policy, system="", tools=ToolRegistry(TOOLS), options={}, seed=None)


class ViolationError(AssertionError):
    """A promise is broken; the message says which."""


def fuzz_formats(text: str, cuts: Sequence[int]) -> None:
    """Parse a text in chunks and as a whole.

    A first character with an odd number chooses the format, any other one `auto`.
    """
    form = FORMATS[ord(text[0]) % len(FORMATS)] if text and ord(text[0]) % 2 else "auto"
    decoder = stream(form, TOOLS)
    for chunk in _iter_chunks(text[1:], cuts):
        decoder.feed(chunk)
    _check_same(f"{form} in chunks", decoder.close(), parse(text[1:], format=form, tools=TOOLS))
    for call in parse(text[1:], format=form, tools=TOOLS).calls:
        write_json(call.arguments)


def fuzz_arguments(text: str, cuts: Sequence[int]) -> None:
    result = read_arguments(text, 100_000)
    if result.arguments is not None:
        write_json(result.arguments)


def fuzz_partial_json(text: str, cuts: Sequence[int]) -> None:
    for end in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        read_partial(text[:end])


def fuzz_literals(text: str, cuts: Sequence[int]) -> None:
    with suppress(InvalidJsonError):
        write_json(read_value(text))


def fuzz_text_json(text: str, cuts: Sequence[int]) -> None:
    TextJsonMethod().parse_answer({"role": "assistant", "content": text}, TOOLS)


def fuzz_bodies(text: str, cuts: Sequence[int]) -> None:
    _check_same_answer(lambda: BodyDecoder(_read_answer), _encode(text), cuts)


def fuzz_streams(text: str, cuts: Sequence[int]) -> None:
    _check_same_answer(lambda: StreamDecoder(_read_answer), _encode(text), cuts)


def fuzz_events(text: str, cuts: Sequence[int]) -> None:
    body = _encode(text)
    whole, split = EventReader(), EventReader()
    together = [*whole.feed(body), *whole.close()]
    apart = [event for chunk in _iter_chunks(body, cuts) for event in split.feed(chunk)]
    _check_same("events in chunks", [*apart, *split.close()], together)


TARGETS: tuple[Callable[[str, Sequence[int]], None], ...] = (
    fuzz_formats,
    fuzz_streams,
    fuzz_formats,
    fuzz_bodies,
    fuzz_formats,
    fuzz_arguments,
    fuzz_literals,
    fuzz_text_json,
    fuzz_partial_json,
    fuzz_events,
)


def run_input(data: bytes) -> None:
    """Run one input of the fuzzer; an input without bytes goes to the first target.

    Its first byte chooses the target, the next two choose whether growth is checked, the next two where the text is cut
    into chunks. The rest is the text.

    Raises:
        ViolationError: a promise is broken. Any other exception breaks one too.
    """
    text = data[5:].decode("utf-8", "surrogateescape")
    target = TARGETS[data[0] % len(TARGETS) if data else 0]
    target(text, [data[3] * 7, data[4] * 3, data[3] * 31 + data[4]] if len(data) > 5 else ())
    if data[1:2] == b"\x01" and data[2:3] < bytes([256 // GROWTH_CHECK_INTERVAL]):
        check_growth(target, text)


def check_growth(target: Callable[[str, Sequence[int]], None], text: str) -> None:
    """Check that a text of eight times the length takes at most 24 times as long.

    Raises:
        ViolationError: it takes longer, and so does the fastest of three repeats.
    """
    short = _measure_seconds(target, text * SHORT_REPEATS)
    long = _measure_seconds(target, text * LONG_REPEATS)
    if long > SLOW_SECONDS and long > MAX_GROWTH * short:
        short = min(_measure_seconds(target, text * SHORT_REPEATS) for _ in range(3))
        long = min(_measure_seconds(target, text * LONG_REPEATS) for _ in range(3))
        if long > SLOW_SECONDS and long > MAX_GROWTH * short:
            raise ViolationError(
                f"{target.__name__}: {len(text)} × {SHORT_REPEATS}: {short:.4f} s, "
                f"× {LONG_REPEATS}: {long:.4f} s: {text!r}"
            )


def _measure_seconds(target: Callable[[str, Sequence[int]], None], text: str) -> float:
    began = time.process_time()
    target(text, ())
    return time.process_time() - began


def _read_answer(answer: ChatAnswer) -> Turn:
    return parse_chat_turn(_SETUP, answer, has_tools=True)


def _encode(text: str) -> bytes:
    """Encode as UTF-8, lone surrogates included, so that some bodies are not valid UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def _check_same_answer(open_decoder: Callable[[], AnswerDecoder], body: bytes, cuts: Sequence[int]) -> None:
    whole, split = open_decoder(), open_decoder()
    whole.feed(body)
    for chunk in _iter_chunks(body, cuts):
        split.feed(chunk)
    _check_same("an answer in chunks", _close(split), _close(whole))


def _close(decoder: AnswerDecoder) -> Turn | str:
    try:
        return decoder.close()
    except MalformedAnswerError as error:
        return error.code


def _check_same(what: str, apart: object, together: object) -> None:
    if apart != together and repr(apart) != repr(together):
        raise ViolationError(f"{what} differs: {apart!r} is not {together!r}")


def _iter_chunks(text: AnyStr, cuts: Sequence[int]) -> Iterator[AnyStr]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    yield from (text[start:end] for start, end in pairwise(places))
