"""Round trips of BFCL's golden calls through every text format, judged by BFCL's own checker.

`python -m benchmarks.bfcl_round_trip` tries all cases in all formats; `--every 50` tries each fiftieth. The calls of a
case are rendered, and the text is parsed in four ways: as a whole, in chunks of random sizes, after prose and
reasoning, and by `auto`; the last two only if the format has markers. Names with dots are written with `_` if a format
cannot hold dots. The exit code is 1 if a round trip failed.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolbench.engine.formats import TextCall, is_round_trip_safe, list_format_names, parse, render, stream
from toolbench.engine.formats.registry import AUTO, get_format
from toolbench.engine.formats.types import ParsedText
from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.ask_checker import check_answers
from toolbench.evals.bfcl.cases import BfclCase, iter_cases
from toolbench.evals.bfcl.golden_answers import BfclCall, build_golden_calls

READ_MODES = ("whole", "pieces", "behind prose and reasoning", "auto")
PROSE_TEXT, REASONING_TEXT = "I will look that up.", "The user wants a tool. Let me think."
MAX_CHUNK_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """An answer that was rendered and parsed.

    Attributes:
        way: how it was parsed, one of READ_MODES.
        written: the rendered text.
        calls: the parsed calls.
        text_matches: whether text and reasoning were parsed as they were written, without a finding.
    """

    format: str
    way: str
    case: BfclCase
    written: str
    calls: tuple[BfclCall, ...]
    text_matches: bool


@dataclass(frozen=True, slots=True)
class FormatTally:
    """Counts of one format.

    Attributes:
        case_count: number of cases that the format can hold.
        tried: number of round trips by read mode, in the order of READ_MODES.
        right: number of those that are right.
    """

    format: str
    case_count: int
    tried: tuple[int, ...]
    right: tuple[int, ...]


def has_markers(form: str) -> bool:
    """Return whether a format has markers."""
    definition = get_format(form)
    return bool(definition.blocks or definition.build_named_blocks(["f"]))


def iter_round_trips(chosen: Sequence[BfclCase], form: str, seed: int) -> Iterator[RoundTrip]:
    """Yield the round trips of every case that the format can hold."""
    for case in chosen:
        calls, tools, own_names = _rename_for_format(case, form)
        if not is_round_trip_safe(calls, format=form, tools=tools):
            continue
        sizes = random.Random(f"{seed} {form} {case.id}")
        plain = render(calls, format=form)
        yield _build_round_trip(form, READ_MODES[0], case, plain, parse(plain, format=form, tools=tools), own_names)
        yield _build_round_trip(
            form, READ_MODES[1], case, plain, _parse_in_chunks(plain, form, tools, sizes), own_names
        )
        if has_markers(form):
            full = render(calls, format=form, text=PROSE_TEXT, reasoning=REASONING_TEXT)
            yield _build_round_trip(
                form, READ_MODES[2], case, full, _parse_in_chunks(full, form, tools, sizes), own_names
            )
            yield _build_round_trip(form, READ_MODES[3], case, plain, parse(plain, format=AUTO, tools=tools), own_names)


def count_by_format(made: Sequence[RoundTrip], right: Sequence[bool]) -> list[FormatTally]:
    """Return the counts of each format, sorted by its name."""
    rows = sorted(zip(made, right, strict=True), key=lambda pair: pair[0].format)
    tallies = []
    for form, group in groupby(rows, lambda pair: pair[0].format):
        of_format = list(group)
        by_way = [[good for trip, good in of_format if trip.way == way] for way in READ_MODES]
        tallies.append(FormatTally(form, len(by_way[0]), tuple(map(len, by_way)), tuple(map(sum, by_way))))
    return tallies


def judge_round_trips(made: Sequence[RoundTrip]) -> list[bool]:
    """Return whether BFCL's checker accepts the calls of each round trip, and its text matches."""
    verdicts = check_answers([(trip.case, trip.calls) for trip in made])
    return [verdict.valid and trip.text_matches for trip, verdict in zip(made, verdicts, strict=True)]


def filter_valid_cases(chosen: Sequence[BfclCase]) -> list[BfclCase]:
    """Return the cases whose golden calls BFCL's checker accepts as they are."""
    verdicts = check_answers([(case, build_golden_calls(case)) for case in chosen])
    return [case for case, verdict in zip(chosen, verdicts, strict=True) if verdict.valid]


def _rename_for_format(case: BfclCase, form: str) -> tuple[list[TextCall], list[JsonObject], dict[str, str]]:
    """Return calls and tools with names that the format can hold, and BFCL's name by each of these."""
    listed = [tool["function"]["name"] for tool in case.tools]
    can_hold_dots = all(is_round_trip_safe([TextCall(name, {})], format=form) for name in listed)
    spelled = {name: name if can_hold_dots else name.replace(".", "_") for name in listed}
    tools = [
        {**tool, "function": {**tool["function"], "name": spelled[tool["function"]["name"]]}} for tool in case.tools
    ]
    calls = [
        TextCall(spelled[name], arguments, f"abcdefg{place:02}")
        for place, (name, arguments) in enumerate(build_golden_calls(case))
    ]
    return calls, tools, {written: name for name, written in spelled.items()}


def _build_round_trip(
    form: str, way: str, case: BfclCase, written: str, parsed: ParsedText, own_names: dict[str, str]
) -> RoundTrip:
    calls = tuple((own_names.get(call.name, call.name), call.arguments) for call in parsed.calls)
    texts = (PROSE_TEXT, REASONING_TEXT) if way == READ_MODES[2] else ("", "")
    return RoundTrip(form, way, case, written, calls, (parsed.text, parsed.reasoning) == texts and not parsed.findings)


def _parse_in_chunks(written: str, form: str, tools: list[JsonObject], sizes: random.Random) -> ParsedText:
    decoder = stream(form, tools)
    at = 0
    while at < len(written):
        size = sizes.randint(1, MAX_CHUNK_CHARACTERS)
        decoder.feed(written[at : at + size])
        at += size
    return decoder.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl_round_trip", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try every n-th case (default 1: all)")
    parser.add_argument(
        "--formats", nargs="*", default=[name for name in list_format_names() if name != AUTO], help="default: all"
    )
    parser.add_argument("--seed", type=int, default=1, help="for the sizes of chunks (default 1)")
    options = parser.parse_args()
    listed = list(iter_cases())[:: options.every]
    chosen = filter_valid_cases(listed)
    refused = len(listed) - len(chosen)
    print(f"{len(listed)} cases; {refused} are left out, since BFCL's checker refuses their golden calls")
    wrong = 0
    print(f"{'format':24} {'cases':>6} " + " ".join(f"{way:>27}" for way in READ_MODES))
    for form in options.formats:
        made = list(iter_round_trips(chosen, form, options.seed))
        right = judge_round_trips(made)
        for row in count_by_format(made, right):
            cells = (f"{good}/{tried}" for good, tried in zip(row.right, row.tried, strict=True))
            print(f"{form:24} {row.case_count:6} " + " ".join(f"{cell:>27}" for cell in cells), flush=True)
        missed = [trip for trip, good in zip(made, right, strict=True) if not good]
        wrong += len(missed)
        for trip in missed[:2]:
            print(f"  {trip.case.id} {trip.way}: {trip.written[:300]!r} -> {str(trip.calls)[:300]}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
