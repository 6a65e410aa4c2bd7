"""Simulated models, each with at most one fault and with its true rates, from data/personas.json."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject

PERSONAS_PATH = Path(__file__).parent.parent / "data" / "personas.json"


@dataclass(frozen=True, slots=True)
class Persona:
    """Simulated model with one known fault, or without one.

    Attributes:
        slug: name of the model in requests.
        group: heading under which lists show it.
        title: name on pages.
        sentence: description on pages.
        drift: name of its fault, "" for none.
        rate: share of trials, 0 to 1, that have the fault; in these it occurs at each of `places`.
        places: values of `Move.place` at which the fault occurs, or "any".
        once: whether the fault occurs only at the first attempt at a move, so that the model recovers.
        median_ms: median of its lognormal latency.
        spread: standard deviation of the logarithm of its latency.
        wires: wire formats of the simulated providers that offer the model; the server answers in any other one, too.
        workarounds: presets that the strategy production adds for this model.
        true_rates: success by scenario and strategy, as `/v1/models` publishes it. `drift` is the same number as
            `rate`. `infrastructure` says whether the fault causes infrastructure errors and no failures of the model.
            `streamed` has the rates that differ in streams. Every other key is a scenario's slug or its group's name
            (the slug takes precedence); its value is the probability of end-to-end success with the native method by
            strategy: raw, baseline and production.
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
    """Build the model's entry in the response of `/v1/models`."""
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
    """Return the simulated models by slug, in the order of data/personas.json. The result is cached."""
    document = json.loads(PERSONAS_PATH.read_text(encoding="utf-8"))
    return {row["slug"]: _parse_persona(row, document["defaults"]) for row in document["personas"]}


def _parse_persona(row: JsonObject, defaults: JsonObject) -> Persona:
    merged = defaults | row
    success = _add_baseline(defaults["success"] | row.get("success", {}), merged["workarounds"])
    streamed = _add_baseline(row.get("streamed", {}), merged["workarounds"])
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
    """Return the rates, and add that of the strategy baseline where the file has none.

    Baseline is production without the model's workarounds. For a model without workarounds, its rate is therefore that
    of production; for any other, it is that of raw.
    """
    equal_strategy = "raw" if workarounds else "production"
    return {
        name: {"raw": rate["raw"], "baseline": rate.get("baseline", rate[equal_strategy]), **rate}
        for name, rate in rates.items()
    }
