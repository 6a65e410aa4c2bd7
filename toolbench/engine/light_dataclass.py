"""Dataclasses for values that are created many times in a trial.

A frozen dataclass calls `object.__setattr__` for every field, which took a tenth of a trial's time. Dataclasses
declared with `light` are frozen for the type checker only; assignments are not refused at run time. See
docs/decisions/013-*.md.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["light"]

if TYPE_CHECKING:
    from dataclasses import dataclass as light
else:
    from dataclasses import dataclass

    def light(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """Return a decorator for dataclasses that have the equality and hash of a frozen one but are mutable."""
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)
