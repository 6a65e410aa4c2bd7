"""The case study's models, sampling profiles and strategies."""

from dataclasses import dataclass, field
from functools import cache

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import freeze_row, read_table


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model of the case study.

    Attributes:
        name: The name that is sent, unchanged.
        canonical: The name of the weights, which several models may share.
        workarounds: Presets that the strategy production applies.
        mixed_upstreams: Whether the router chooses among providers by speed.
        retired: Whether the model is no longer served; `note` has the date and the source.
    """

    name: str
    canonical: str
    tags: tuple[str, ...]
    workarounds: tuple[str, ...] = ()
    mixed_upstreams: bool = False
    retired: bool = False
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words by which a filter may name it: id, id without `:variant`, vendor, tags."""
        return (self.name, self.name.partition(":")[0], self.name.partition("/")[0], *self.tags)


@dataclass(frozen=True, slots=True)
class CatalogueProfile:
    """Sampling options; `applies_to` is a case-sensitive glob on the model's name."""

    name: str
    applies_to: str
    tags: tuple[str, ...]
    options: JsonObject = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words by which a filter may name it: name and tags."""
        return (self.name, *self.tags)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A choice of the workaround layers that apply."""

    name: str
    tags: tuple[str, ...]
    infrastructure: bool
    provider: bool
    workarounds: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words by which a filter may name it: name and tags."""
        return (self.name, *self.tags)


STRATEGIES = (
    Strategy("raw", ("naked", "unoptimized"), infrastructure=False, provider=False, workarounds=False),
    Strategy("baseline", ("base",), infrastructure=True, provider=True, workarounds=False),
    Strategy("production", ("prod", "recommended"), infrastructure=True, provider=True, workarounds=True),
)
MATRIX_STRATEGIES = ("baseline", "production")


@cache
def load_models() -> tuple[CatalogueModel, ...]:
    """Return the models of `data/models.json`, in its order."""
    return tuple(CatalogueModel(**freeze_row(row)) for row in read_table("models"))


@cache
def load_profiles() -> tuple[CatalogueProfile, ...]:
    """Return the profiles of `data/profiles.json`, in its order."""
    return tuple(CatalogueProfile(**freeze_row(row)) for row in read_table("profiles"))
