"""Remembering what was made of a value: by which object it is, not by what is in it."""

from typing import Generic, TypeVar

Value = TypeVar("Value")


class IdentityKey(Generic[Value]):
    """A key for a cache. Equal to another one around the very same object, which it keeps alive and which nobody may
    change."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value
