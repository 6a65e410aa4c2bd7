"""Results of a probe, one per check."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities, parse_capabilities
from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject

CheckOutcome = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """Result of one check.

    Attributes:
        sentence: the result in words.
        learned: capabilities that the check shows, by name; empty when it is inconclusive.
        exchanges: numbers of the exchanges that are the evidence.
        blocked: whether the endpoint cannot be probed at all, so that every other check would be inconclusive too.
    """

    slug: str
    outcome: CheckOutcome
    sentence: str
    learned: JsonObject = field(default_factory=dict)
    exchanges: tuple[int, ...] = ()
    blocked: bool = False


def build_inconclusive(slug: str, error: ExchangeError | None, exchanges: tuple[int, ...] = ()) -> ProbeCheck:
    """Build an inconclusive result, from which no capability is learned."""
    message = f"{error.message} ({error.code})" if error else "There was no answer."
    return ProbeCheck(slug, "unknown", f"Inconclusive: {message}", exchanges=exchanges)


def learned(checks: Iterable[ProbeCheck]) -> Capabilities:
    """Return the capabilities that all checks show together.

    Lists are joined; of any other value the later check's counts.
    """
    together: JsonObject = {}
    for check in checks:
        for name, value in check.learned.items():
            if isinstance(value, list):
                together[name] = list(dict.fromkeys([*together.get(name, []), *value]))
            else:
                together[name] = value
    return parse_capabilities(together)
