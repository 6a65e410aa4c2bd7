"""What is fuzzed: everything that reads what a model or an endpoint wrote. Each target raises ViolationError when a
promise is broken: no exception, pieces give what the whole gives, time grows with the length and no faster."""

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
SHORT_CHARACTERS, LONG_CHARACTERS = 16, 128  # how often a text is repeated to see whether time grows with its length
SLOW_SECONDS = 0.2  # what a repeated text may take before growth is looked at
MAX_GROWTH = 3 * LONG_CHARACTERS / SHORT_CHARACTERS
_SETUP = prepare_turns("m", resolve_policy([]).policy, system="", tools=ToolRegistry(TOOLS), options={}, seed=None)


class ViolationError(AssertionError):
    """A promise was broken; the message says which."""


def fuzz_formats(text: str, cuts: Sequence[int]) -> None:
    """The first character chooses the format, every other one `auto`."""
    form = FORMATS[ord(text[0]) % len(FORMATS)] if text and ord(text[0]) % 2 else "auto"
    decoder = stream(form, TOOLS)
    for piece in _iter_chunks(text[1:], cuts):
        decoder.feed(piece)
    _check_same(f"{form} in pieces", decoder.close(), parse(text[1:], format=form, tools=TOOLS))
    for call in parse(text[1:], format=form, tools=TOOLS).calls:
        write_json(call.arguments)


def fuzz_arguments(text: str, cuts: Sequence[int]) -> None:
    read = read_arguments(text, 100_000)
    if read.arguments is not None:
        write_json(read.arguments)


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
    apart = [event for piece in _iter_chunks(body, cuts) for event in split.feed(piece)]
    _check_same("events in pieces", [*apart, *split.close()], together)


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


def check_growth(target: Callable[[str, Sequence[int]], None], text: str) -> None:
    """Raises ViolationError when eight times the text takes more than three times eight times as long."""
    short = _measure_seconds(target, text * SHORT_CHARACTERS)
    long = _measure_seconds(target, text * LONG_CHARACTERS)
    if long > SLOW_SECONDS and long > MAX_GROWTH * short:
        short = min(_measure_seconds(target, text * SHORT_CHARACTERS) for _ in range(3))
        long = min(_measure_seconds(target, text * LONG_CHARACTERS) for _ in range(3))
        if long > SLOW_SECONDS and long > MAX_GROWTH * short:
            raise ViolationError(
                f"{target.__name__}: {len(text)} × {SHORT_CHARACTERS}: {short:.4f} s, "
                f"× {LONG_CHARACTERS}: {long:.4f} s: {text!r}"
            )


def _measure_seconds(target: Callable[[str, Sequence[int]], None], text: str) -> float:
    began = time.process_time()
    target(text, ())
    return time.process_time() - began


def _read_answer(answer: ChatAnswer) -> Turn:
    return parse_chat_turn(_SETUP, answer, has_tools=True)


def _encode(text: str) -> bytes:
    """UTF-8, with lone surrogates as they are: bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def _check_same_answer(opened: Callable[[], AnswerDecoder], body: bytes, cuts: Sequence[int]) -> None:
    whole, split = opened(), opened()
    whole.feed(body)
    for piece in _iter_chunks(body, cuts):
        split.feed(piece)
    _check_same("an answer in pieces", _close(split), _close(whole))


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
