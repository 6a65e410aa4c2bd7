"""The cast: personas as data, each with one drift and the rates that are true of it."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject

PERSONAS_PATH = Path(__file__).parent.parent / "data" / "personas.json"


@dataclass(frozen=True, slots=True)
class Persona:
    """`group` is where lists put it. `drift` names what it does wrong ("" for nothing); `rate` is the share of trials
    in which it does; `places` the moves it befalls (see play.Move, or "any"); `once` means that only a first try is
    befallen, so that it recovers. `median_ms` and `spread` describe a lognormal latency. `wires` are those on which its
    drift can be said at all; on any other it does nothing wrong. `workarounds` are presets that strategy production
    adds.

    `true_rates` holds `drift`, the share of trials that may drift; `infrastructure`, whether those are left out of
    success given an answer; and under a scenario's slug or its group's name (the slug comes first) the probability of
    a delivered task pass of the native method in strategies raw, baseline and production. Where streams fare
    otherwise, the same stands under `streamed`."""

    slug: str
    group: str
    title: str
    sentence: str
    drift: str
    rate: float
    places: tuple[str, ...]
    once: bool
    median_ms: float
    spread: float
    wires: tuple[str, ...]
    workarounds: tuple[str, ...]
    true_rates: JsonObject


def describe_persona(persona: Persona) -> JsonObject:
    """The persona as `/v1/models` lists it."""
    return {
        "id": persona.slug,
        "object": "model",
        "created": 0,
        "owned_by": "simulated",
        "name": persona.title,
        "description": persona.sentence,
        "simulated": {
            "drift": persona.drift,
            "true_rates": persona.true_rates,
            "workarounds": list(persona.workarounds),
        },
    }


@cache
def load_personas() -> dict[str, Persona]:
    """Every persona by slug, in the order of the file."""
    written = json.loads(PERSONAS_PATH.read_text(encoding="utf-8"))
    return {item["slug"]: _parse_persona(item, written["defaults"]) for item in written["personas"]}


def _parse_persona(item: JsonObject, defaults: JsonObject) -> Persona:
    merged = defaults | item
    success = _add_baseline(defaults["success"] | item.get("success", {}), merged["workarounds"])
    streamed = _add_baseline(item.get("streamed", {}), merged["workarounds"])
    return Persona(
        slug=merged["slug"],
        group=merged["group"],
        title=merged["title"],
        sentence=merged["sentence"],
        drift=merged["drift"],
        rate=float(merged["rate"]),
        places=tuple(merged["places"]),
        once=merged["once"],
        median_ms=float(merged["median_ms"]),
        spread=float(merged["spread"]),
        wires=tuple(merged["wires"]),
        workarounds=tuple(merged["workarounds"]),
        true_rates={
            "drift": merged["rate"],
            "infrastructure": merged["infrastructure"],
            **success,
            **({"streamed": streamed} if streamed else {}),
        },
    )


def _add_baseline(rates: JsonObject, workarounds: list[str]) -> JsonObject:
    """Where the file does not say it, baseline is production without the persona's own workarounds: the same where it
    has none, else like raw."""
    like = "raw" if workarounds else "production"
    return {
        name: {"raw": rate["raw"], "baseline": rate.get("baseline", rate[like]), **rate} for name, rate in rates.items()
    }
