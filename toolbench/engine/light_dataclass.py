"""Frozen values that are made many times in a trial.

A frozen dataclass sets every field through a call of its own, which took a tenth of a trial's time. The values declared
here are frozen only for the type checker, which refuses every assignment. See docs/decisions/013-*.md.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["light"]

if TYPE_CHECKING:
    from dataclasses import dataclass as light
else:
    from dataclasses import dataclass

    def light(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """Return a decorator for dataclasses with the equality and the hash of a frozen one."""
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)
