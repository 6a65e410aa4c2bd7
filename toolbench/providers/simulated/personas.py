"""Simulated models as data, each with one fault and its true rates."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject

PERSONAS_PATH = Path(__file__).parent.parent / "data" / "personas.json"


@dataclass(frozen=True, slots=True)
class Persona:
    """Simulated model with one known fault.

    Attributes:
        group: heading under which lists show it.
        drift: name of its fault, "" for none.
        rate: share of trials in which the fault occurs, 0 to 1.
        places: moves that the fault affects, as in `Move.place`, or "any".
        once: whether only the first attempt is affected, so that the model recovers.
        median_ms: median of its lognormal latency.
        spread: standard deviation of the logarithm of its latency.
        wires: wire formats in which the fault can occur; in any other the model is correct.
        workarounds: presets that the strategy production adds.
        true_rates: `drift`, the share of trials that may show the fault; `infrastructure`, whether those trials are
            left out of answered success; and by a scenario's slug or its group's name (the slug takes precedence) the
            probability of end-to-end success of the native method in the strategies raw, baseline and production. Rates
            that differ in streams are under `streamed`.
    """

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
    """Return the simulated model as an entry of `/v1/models`."""
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
    """Return every simulated model by slug, in the order of the file."""
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
    """Return the rates with the one of baseline added where the file does not give it.

    Baseline is production without the model's workarounds: equal to production for a model without any, else to raw.
    """
    like = "raw" if workarounds else "production"
    return {
        name: {"raw": rate["raw"], "baseline": rate.get("baseline", rate[like]), **rate} for name, rate in rates.items()
    }
