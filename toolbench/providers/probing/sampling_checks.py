"""Checks of whether sampling options have an effect."""

from collections.abc import Sequence
from dataclasses import replace

from toolbench.engine.events import ExchangeError
from toolbench.engine.transforms.requests import TOKEN_LIMIT_KEYS
from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.engine.wire_formats.responses.requests import MIN_TOKEN_LIMIT
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import Prober, ProbeRequest, ProbeResult

SMALL_LIMIT_TOKENS = 4


async def check_max_tokens(prober: Prober) -> ProbeCheck:
    """Check that a small token limit truncates a long answer.

    The limit is `SMALL_LIMIT_TOKENS`; the wire format of the Responses API raises it to `MIN_TOKEN_LIMIT`. The names of
    the limit are tried until one has an effect; a name that is refused or ignored is skipped. An answer counts as
    truncated by the limit if it has at most twice as many tokens.
    """
    max_truncated_tokens = 2 * (MIN_TOKEN_LIMIT if prober.wire.name == "responses" else SMALL_LIMIT_TOKENS)
    names = dict.fromkeys((prober.limit_name, *(() if prober.uses_messages else TOKEN_LIMIT_KEYS)))
    exchange_numbers: tuple[int, ...] = ()
    refusals: list[ExchangeError] = []
    ignored_names: list[str] = []
    for name in names:
        result = await prober.ask(
            ProbeRequest("", "Count from one to fifty in words.", options=_build_limit_options(name, prober))
        )
        exchange_numbers = (*exchange_numbers, *result.exchange_numbers)
        if result.error is not None and not result.error.infrastructure:
            refusals.append(result.error)
            continue
        if result.error is not None or result.turn is None:
            return build_inconclusive("max_tokens", result.error, exchange_numbers)
        output_tokens = result.turn.usage.output_tokens if result.turn.usage else None
        if result.turn.finish_reason == "length" and (output_tokens is None or output_tokens <= max_truncated_tokens):
            learned: JsonObject = {"honours": ["max_tokens"], "limit_name": name}
            return ProbeCheck(
                "max_tokens", "passed", f"{name} is accepted and has an effect.", learned, exchange_numbers
            )
        if len(result.turn.text.split()) <= max_truncated_tokens:
            message = "Inconclusive: the answer was shorter than the limit."
            return ProbeCheck("max_tokens", "unknown", message, exchanges=exchange_numbers)
        ignored_names.append(name)
    if not ignored_names:
        return build_inconclusive("max_tokens", refusals[0], exchange_numbers)
    return replace(
        _build_ignored("max_tokens", exchange_numbers), sentence=f"{ignored_names[0]} is accepted and has no effect."
    )


def _build_limit_options(name: str, prober: Prober) -> JsonObject:
    """Return options with a limit under this name only; None removes the one that `Prober` sets."""
    return (
        {name: SMALL_LIMIT_TOKENS} if name == prober.limit_name else {prober.limit_name: None, name: SMALL_LIMIT_TOKENS}
    )


async def check_stop(prober: Prober) -> ProbeCheck:
    """Check that an answer ends before a stop sequence."""
    request = ProbeRequest("", "Write exactly this: one two three four five six", options={"stop": ["four"]})
    result = await prober.ask(request)
    if result.error is not None or result.turn is None:
        return build_inconclusive("stop", result.error, result.exchange_numbers)
    text = result.turn.text.lower()
    if "four" in text:
        return _build_ignored("stop", result.exchange_numbers)
    if "three" in text:
        return _build_honoured("stop", result.exchange_numbers)
    return ProbeCheck(
        "stop", "unknown", "Inconclusive: the answer ended before the stop sequence.", {}, result.exchange_numbers
    )


async def check_temperature(prober: Prober) -> ProbeCheck:
    """Check that two answers to the same open question are equal at temperature 0."""
    results = [await prober.ask(_build_open_question({"temperature": 0})) for _ in range(2)]
    exchange_numbers, texts = _collect_texts(results)
    if len(texts) < 2:
        return build_inconclusive("temperature", _find_error(results), exchange_numbers)
    if len(set(texts)) == 1:
        message = "Two answers at temperature 0 are equal."
        return ProbeCheck("temperature", "passed", message, {"honours": ["temperature"]}, exchange_numbers)
    return ProbeCheck("temperature", "failed", "Two answers at temperature 0 differ.", {}, exchange_numbers)


async def check_seed(prober: Prober) -> ProbeCheck:
    """Check that, at temperature 1, equal seeds give equal answers and another seed gives a different one."""
    results = [await prober.ask(_build_open_question({"temperature": 1, "seed": seed})) for seed in (11, 11, 12)]
    exchange_numbers, texts = _collect_texts(results)
    if len(texts) < 3:
        return build_inconclusive("seed", _find_error(results), exchange_numbers)
    if texts[0] != texts[1]:
        return _build_ignored("seed", exchange_numbers)
    if texts[0] != texts[2]:
        return _build_honoured("seed", exchange_numbers)
    message = "Inconclusive: another seed gives the same answer."
    return ProbeCheck("seed", "unknown", message, exchanges=exchange_numbers)


def _build_open_question(options: JsonObject) -> ProbeRequest:
    return ProbeRequest("", "Invent a name for a small boat. Say only the name.", options=options)


def _collect_texts(results: Sequence[ProbeResult]) -> tuple[tuple[int, ...], list[str]]:
    """Return the numbers of all exchanges, and the texts that are not blank.

    A blank answer, as of a model whose reasoning reached the token limit, cannot be compared.
    """
    exchange_numbers = tuple(number for result in results for number in result.exchange_numbers)
    return exchange_numbers, [result.turn.text for result in results if result.turn and not is_blank(result.turn.text)]


def _find_error(results: Sequence[ProbeResult]) -> ExchangeError | None:
    """Return the error of the first failed request; None if there is none."""
    return next((result.error for result in results if result.error), None)


def _build_honoured(option: str, exchange_numbers: tuple[int, ...]) -> ProbeCheck:
    return ProbeCheck(
        option, "passed", f"{option} is accepted and has an effect.", {"honours": [option]}, exchange_numbers
    )


def _build_ignored(option: str, exchange_numbers: tuple[int, ...]) -> ProbeCheck:
    return ProbeCheck(
        option, "failed", f"{option} is accepted and has no effect.", {"ignores": [option]}, exchange_numbers
    )
