"""Random draws from a seed, which give the same instance on every machine and Python version."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SeededDraws:
    """The random draws of one instance.

    Attributes:
        source: The random generator.
        plain: Whether `choice` returns the first item, `shuffle` the given order and `draw_sample` no items, instead of
            random ones.
    """

    source: random.Random
    plain: bool

    @classmethod
    def from_seed(cls, slug: str, seed: int, *, plain: bool) -> "SeededDraws":
        """Return the draws of an instance; from the same seed, scenarios of different slugs draw independently."""
        digest = hashlib.sha256(f"{slug}:{seed}".encode()).digest()
        return cls(random.Random(int.from_bytes(digest[:16], "big")), plain)

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one random item; the first if `plain`."""
        return items[0] if self.plain else items[self.source.randrange(len(items))]

    def shuffle(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order; in the given order if `plain`."""
        return list(items) if self.plain else self.source.sample(list(items), len(items))

    def draw_sample(self, items: Sequence[Item], limit: int) -> list[Item]:
        """Return 0 to `limit` random items, each at most once; none if `plain`."""
        return [] if self.plain else self.source.sample(list(items), self.source.randrange(limit + 1))

    def draw_integer(self, low: int, high: int) -> int:
        """Return a random integer from `low` to `high`, both included, even if `plain`."""
        return self.source.randint(low, high)

    def draw_uuid(self) -> str:
        """Return a random UUID, even if `plain`."""
        return str(UUID(int=self.source.getrandbits(128), version=4))
