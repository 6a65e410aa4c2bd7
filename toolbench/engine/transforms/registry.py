"""Named transforms by kind.

A transform is a function of one value. It returns the same object if it has nothing to do and a new one otherwise, and
never changes its argument. Its changes are found by comparing the two.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from toolbench.engine.errors import EngineError
from toolbench.engine.formats import AUTO, Tool
from toolbench.engine.light_dataclass import light
from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.transforms.changes import list_changes
from toolbench.engine.types import TransformChange

Value = TypeVar("Value")


@light(frozen=True, slots=True)
class TransformContext:
    """What some transforms need besides their value.

    Attributes:
        tools: the tools of the turn.
        text_format: the format of calls in text.
        id_pattern: pattern that the endpoint's ids of calls must match as a whole; "" for none.
        guess_untyped: whether values without a type in the schema are guessed.
    """

    tools: tuple[Tool, ...] = ()
    text_format: str = AUTO
    id_pattern: str = ""
    guess_untyped: bool = False


EMPTY_CONTEXT = TransformContext()


class UnknownTransformError(EngineError):
    """There is no transform with this name; raised in strict mode only."""


class TransformKind(Generic[Value]):
    """All transforms of one kind by name. The name is that of the function, the description its docstring."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._by_name: dict[str, Callable[[Value, TransformContext], Value]] = {}
        self._described: dict[str, str] = {}

    def register(self, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
        """Register a transform. A decorator."""
        self._keep(function.__name__, function.__doc__, lambda value, facts: function(value))
        return function

    def register_with_context(
        self, function: Callable[[Value, TransformContext], Value]
    ) -> Callable[[Value, TransformContext], Value]:
        """Register a transform that also gets the context. A decorator."""
        self._keep(function.__name__, function.__doc__, function)
        return function

    def _keep(self, name: str, description: str | None, function: Callable[[Value, TransformContext], Value]) -> None:
        self._by_name[name] = function
        self._described[name] = " ".join((description or "").split())

    def names(self) -> tuple[str, ...]:
        """Return the names in the order of registration."""
        return tuple(self._by_name)

    def describe(self, name: str) -> str:
        """Return what the transform does.

        Raises:
            UnknownTransformError: there is no such transform.
        """
        described = self._described.get(normalise_name(name))
        if described is None:
            raise self._unknown((name,))
        return described

    def check(self, names: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
        """Return the known names in canonical form and the given order, without blank ones.

        Raises:
            UnknownTransformError: a name is unknown; only if `strict` is set, otherwise it is left out.
        """
        chosen = [name for name in map(normalise_name, names) if name]
        unknown = tuple(name for name in chosen if name not in self._by_name)
        if unknown and strict:
            raise self._unknown(unknown)
        return tuple(name for name in chosen if name in self._by_name)

    def apply(
        self, value: Value, names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
    ) -> tuple[Value, tuple[TransformChange, ...]]:
        """Apply the named transforms in turn; return the value and all changes.

        Unknown names are ignored. A value that is nested too deeply for a transform stays unchanged.
        """
        changes: list[TransformChange] = []
        for name in map(normalise_name, names):
            transform = self._by_name.get(name)
            if transform is None:
                continue
            try:
                changed = transform(value, facts)
            except RecursionError:
                continue
            for path, before, after in list_changes(value, changed):
                changes.append(TransformChange(self.kind, name, path, before, after))
            value = changed
        return value, tuple(changes)

    def _unknown(self, unknown: tuple[str, ...]) -> UnknownTransformError:
        return UnknownTransformError(f"unknown {self.kind} transform: {', '.join(unknown)}")
