"""The case study's models, sampling profiles and strategies."""

from dataclasses import dataclass, field
from functools import cache

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import freeze_row, read_table


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model of the case study.

    Attributes:
        name: The name that requests contain.
        canonical: The name of the canonical model, which several names may share.
        workarounds: The presets that the strategy `production` applies.
        mixed_upstreams: Whether the router chooses among several upstream providers by speed.
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
        """Return the words that select the model in a filter: name, name without `:variant`, vendor and tags."""
        return (self.name, self.name.partition(":")[0], self.name.partition("/")[0], *self.tags)


@dataclass(frozen=True, slots=True)
class CatalogueProfile:
    """A sampling profile of the case study.

    Attributes:
        applies_to: A case-sensitive glob that the model's name has to match.
        options: The sampling options as request parameters.
    """

    name: str
    applies_to: str
    tags: tuple[str, ...]
    options: JsonObject = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words that select the profile in a filter: name and tags."""
        return (self.name, *self.tags)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy of the case study: which policy layers apply.

    Attributes:
        infrastructure: Whether the layer of the infrastructure applies.
        provider: Whether the layer of the provider applies.
        workarounds: Whether the presets of the model apply.
    """

    name: str
    tags: tuple[str, ...]
    infrastructure: bool
    provider: bool
    workarounds: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words that select the strategy in a filter: name and tags."""
        return (self.name, *self.tags)


STRATEGIES = (
    Strategy("raw", ("naked", "unoptimized"), infrastructure=False, provider=False, workarounds=False),
    Strategy("baseline", ("base",), infrastructure=True, provider=True, workarounds=False),
    Strategy("production", ("prod", "recommended"), infrastructure=True, provider=True, workarounds=True),
)
MATRIX_STRATEGIES = ("baseline", "production")  # compared by `manage.py eval --strategy-matrix`


@cache
def load_models() -> tuple[CatalogueModel, ...]:
    """Return the models of `data/models.json`, in the order of the file."""
    return tuple(CatalogueModel(**freeze_row(row)) for row in read_table("models"))


@cache
def load_profiles() -> tuple[CatalogueProfile, ...]:
    """Return the profiles of `data/profiles.json`, in the order of the file."""
    return tuple(CatalogueProfile(**freeze_row(row)) for row in read_table("profiles"))
