"""Results of a probe's checks, and the merge of the capabilities that they show."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities, parse_capabilities
from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject

CheckOutcome = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """Result of one check, stored as a JSON object with the attribute names as keys.

    Attributes:
        slug: name of the check, as in `probes.CHECKS`.
        outcome: "unknown" if the check is inconclusive.
        sentence: the result in words.
        learned: values of the capabilities that the check shows, by field of `Capabilities`. An inconclusive check has
            none, or those that its first requests showed.
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
    """Build an inconclusive result whose reason is the error; None means that there was no answer."""
    message = f"{error.message} ({error.code})" if error else "There was no answer."
    return ProbeCheck(slug, "unknown", f"Inconclusive: {message}", exchanges=exchanges)


def merge_capabilities(checks: Iterable[ProbeCheck]) -> Capabilities:
    """Merge the capabilities of several checks.

    Lists of one capability are joined without repeats. Of other values, that of the last check is used.
    """
    merged: JsonObject = {}
    for check in checks:
        for name, value in check.learned.items():
            if isinstance(value, list):
                merged[name] = list(dict.fromkeys([*merged.get(name, []), *value]))
            else:
                merged[name] = value
    return parse_capabilities(merged)
