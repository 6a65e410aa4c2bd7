"""Which sampling profiles go with which models."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar


class Applicable(Protocol):
    def applies(self, model: str) -> bool: ...


Model = TypeVar("Model")
Profile = TypeVar("Profile", bound=Applicable)


def pairs(
    models: Iterable[Model],
    profiles: Sequence[Profile],
    *,
    name: Callable[[Model], str],
    default: Profile,
    enforce: bool = True,
) -> list[tuple[Model, Profile]]:
    """Every model with every chosen profile that applies to it, else with the default one. Without `enforce` every
    profile goes with every model."""
    found: list[tuple[Model, Profile]] = []
    for model in models:
        fitting = [profile for profile in profiles if not enforce or profile.applies(name(model))]
        found += [(model, profile) for profile in fitting or [default]]
    return found
