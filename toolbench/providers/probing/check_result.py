"""What a probe found, check by check."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities, parse_capabilities
from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject

CheckOutcome = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """One question to the endpoint. `learned` are the capabilities that it shows, by name; nothing where it could not
    be told. `exchanges` are the numbers of the exchanges that are the evidence. `blocked` says that the endpoint could
    not be asked at all: then no other check can tell anything either."""

    slug: str
    outcome: CheckOutcome
    sentence: str
    learned: JsonObject = field(default_factory=dict)
    exchanges: tuple[int, ...] = ()
    blocked: bool = False


def build_inconclusive(slug: str, error: ExchangeError | None, exchanges: tuple[int, ...] = ()) -> ProbeCheck:
    """The endpoint did not answer the question: nothing is learned, and nothing may be remembered as unsupported."""
    said = f"{error.message} ({error.code})" if error else "There was no answer."
    return ProbeCheck(slug, "unknown", f"Could not be told: {said}", exchanges=exchanges)


def learned(checks: Iterable[ProbeCheck]) -> Capabilities:
    """What all checks show together. Lists are joined; of anything else the later check knows better."""
    together: JsonObject = {}
    for check in checks:
        for name, value in check.learned.items():
            if isinstance(value, list):
                together[name] = list(dict.fromkeys([*together.get(name, []), *value]))
            else:
                together[name] = value
    return parse_capabilities(together)
