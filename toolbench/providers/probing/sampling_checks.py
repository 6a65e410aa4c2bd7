"""Checks of sampling options: whether they have their effect."""

from collections.abc import Sequence

from toolbench.engine.messages import JsonObject
from toolbench.engine.transforms.requests import LIMITS
from toolbench.providers.probing.check_result import ProbeCheck, untold
from toolbench.providers.probing.prober import Heard, Prober, Wish

FEW = 4  # tokens


async def check_max_tokens(prober: Prober) -> ProbeCheck:
    """A limit of four tokens must cut a long answer; where it does not, the other name of it is tried."""
    names = dict.fromkeys((prober.limit_name, *(() if prober.in_messages else LIMITS)))
    numbers: tuple[int, ...] = ()
    for name in names:
        heard = await prober.ask(Wish("", "Count from one to fifty in words.", options=_only(name, prober)))
        numbers = (*numbers, *heard.numbers)
        if heard.error is not None or heard.turn is None:
            return untold("max_tokens", heard.error, numbers)
        used = heard.turn.usage.output_tokens if heard.turn.usage else None
        if heard.turn.finish_reason == "length" and (used is None or used <= 2 * FEW):
            known: JsonObject = {"honours": ["max_tokens"], "limit_name": name}
            return ProbeCheck("max_tokens", "passed", f"{name} has its effect.", known, numbers)
        if len(heard.turn.text.split()) <= 2 * FEW:
            said = "Could not be told: the answer was short anyway."
            return ProbeCheck("max_tokens", "unknown", said, exchanges=numbers)
    return _ignored("max_tokens", numbers)


def _only(name: str, prober: Prober) -> JsonObject:
    """A limit under this name alone; null takes the probe's own away."""
    return {name: FEW} if name == prober.limit_name else {prober.limit_name: None, name: FEW}


async def check_stop(prober: Prober) -> ProbeCheck:
    """A stop word must end the answer before it."""
    wish = Wish("", "Write exactly this: one two three four five six", options={"stop": ["four"]})
    heard = await prober.ask(wish)
    if heard.error is not None or heard.turn is None:
        return untold("stop", heard.error, heard.numbers)
    text = heard.turn.text.lower()
    if "four" in text:
        return _ignored("stop", heard.numbers)
    if "three" in text:
        return _honoured("stop", heard.numbers)
    return ProbeCheck(
        "stop", "unknown", "Could not be told: the answer never came to the stop word.", {}, heard.numbers
    )


async def check_temperature(prober: Prober) -> ProbeCheck:
    """The same open question twice at temperature 0."""
    heard = [await prober.ask(_open({"temperature": 0})) for _ in range(2)]
    numbers, texts = _told(heard)
    if len(texts) < 2:
        return untold("temperature", heard[-1].error, numbers)
    if len(set(texts)) == 1:
        said = "Two answers at temperature 0 are equal."
        return ProbeCheck("temperature", "passed", said, {"honours": ["temperature"]}, numbers)
    return ProbeCheck("temperature", "failed", "Two answers at temperature 0 differ.", {}, numbers)


async def check_seed(prober: Prober) -> ProbeCheck:
    """One seed twice and another once at temperature 1: equal, equal, different."""
    heard = [await prober.ask(_open({"temperature": 1, "seed": seed})) for seed in (11, 11, 12)]
    numbers, texts = _told(heard)
    if len(texts) < 3:
        return untold("seed", next((one.error for one in heard if one.error), None), numbers)
    if texts[0] != texts[1]:
        return _ignored("seed", numbers)
    if texts[0] != texts[2]:
        return _honoured("seed", numbers)
    said = "Could not be told: another seed gives the same answer."
    return ProbeCheck("seed", "unknown", said, exchanges=numbers)


def _open(options: JsonObject) -> Wish:
    return Wish("", "Invent a name for a small boat. Say only the name.", options=options)


def _told(heard: Sequence[Heard]) -> tuple[tuple[int, ...], list[str]]:
    numbers = tuple(number for one in heard for number in one.numbers)
    return numbers, [one.turn.text for one in heard if one.turn is not None]


def _honoured(option: str, numbers: tuple[int, ...]) -> ProbeCheck:
    return ProbeCheck(option, "passed", f"{option} has its effect.", {"honours": [option]}, numbers)


def _ignored(option: str, numbers: tuple[int, ...]) -> ProbeCheck:
    return ProbeCheck(option, "failed", f"{option} is taken without effect.", {"ignores": [option]}, numbers)
