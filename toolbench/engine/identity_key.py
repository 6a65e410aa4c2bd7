"""Cache keys that compare objects by identity, not by content."""

from typing import Generic, TypeVar

Value = TypeVar("Value")


class IdentityKey(Generic[Value]):
    """Cache key that equals every other key of the same object.

    It keeps the object alive, so that its id stays unique. The object must not be mutated.
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value
