"""Results of the checks of a probe, and the capabilities that they show together."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities, parse_capabilities
from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject

CheckOutcome = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """Result of one check, stored as JSON with these names as keys.

    Attributes:
        slug: name of the check, as in `probes.CHECKS`.
        outcome: "unknown" if the check is inconclusive.
        sentence: the result in words.
        learned: capabilities that the check shows, by their names in `Capabilities`. An inconclusive check shows none,
            or those of its first requests.
        exchanges: numbers of the exchanges on which the result is based.
        blocked: whether the endpoint cannot be probed at all, so that every other check would be inconclusive too.
    """

    slug: str
    outcome: CheckOutcome
    sentence: str
    learned: JsonObject = field(default_factory=dict)
    exchanges: tuple[int, ...] = ()
    blocked: bool = False


def build_inconclusive(slug: str, error: ExchangeError | None, exchanges: tuple[int, ...] = ()) -> ProbeCheck:
    """Build an inconclusive result, with the error as its reason; None stands for a missing answer."""
    message = f"{error.message} ({error.code})" if error else "There was no answer."
    return ProbeCheck(slug, "unknown", f"Inconclusive: {message}", exchanges=exchanges)


def merge_capabilities(checks: Iterable[ProbeCheck]) -> Capabilities:
    """Return the capabilities that the checks show together.

    Lists of several checks are joined. Any other value of a later check replaces that of an earlier one.
    """
    merged: JsonObject = {}
    for check in checks:
        for name, value in check.learned.items():
            if isinstance(value, list):
                merged[name] = list(dict.fromkeys([*merged.get(name, []), *value]))
            else:
                merged[name] = value
    return parse_capabilities(merged)
