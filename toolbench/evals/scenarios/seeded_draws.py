"""Seeded draws: the same seed gives the same instance on every machine and Python version."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SeededDraws:
    """Draws for one instance. With `plain` every choice is the first one: the parity wording."""

    source: random.Random
    plain: bool

    @classmethod
    def from_seed(cls, scenario: str, seed: int, *, plain: bool) -> "SeededDraws":
        """Scenarios draw independently of each other from the same seed."""
        digest = hashlib.sha256(f"{scenario}:{seed}".encode()).digest()
        return cls(random.Random(int.from_bytes(digest[:16], "big")), plain)

    def choice(self, items: Sequence[Item]) -> Item:
        return items[0] if self.plain else items[self.source.randrange(len(items))]

    def shuffle(self, items: Sequence[Item]) -> list[Item]:
        return list(items) if self.plain else self.source.sample(list(items), len(items))

    def draw_some(self, items: Sequence[Item], most: int) -> list[Item]:
        """None to `most` of the items; none when plain."""
        return [] if self.plain else self.source.sample(list(items), self.source.randrange(most + 1))

    def draw_integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included, also when plain."""
        return self.source.randint(low, high)

    def draw_uuid(self) -> str:
        """A random UUID, also when plain: every trial has its own workspace."""
        return str(UUID(int=self.source.getrandbits(128), version=4))
