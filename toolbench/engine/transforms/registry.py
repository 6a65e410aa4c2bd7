"""Named transforms, kept by kind. A transform is a plain function of one value: it returns the very same object where
it has nothing to do and a new one otherwise, and never changes what it was given. What it changed is found by
comparing the two."""

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
    """What some transforms have to know beside their value: the tools of the turn, the dialect of calls in text and
    whether its untyped values are guessed (see Known), and the pattern that the endpoint's ids of calls must match
    whole, "" for none."""

    tools: tuple[Tool, ...] = ()
    text_format: str = AUTO
    id_pattern: str = ""
    guess_untyped: bool = False


EMPTY_CONTEXT = TransformContext()


class UnknownTransformError(EngineError):
    """A transform's name that nobody registered, in strict mode."""


class TransformKind(Generic[Value]):
    """All transforms of one kind, by name. A transform's name is that of its function, its description the
    docstring."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._by_name: dict[str, Callable[[Value, TransformContext], Value]] = {}
        self._described: dict[str, str] = {}

    def register(self, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
        """A decorator."""
        self._keep(function.__name__, function.__doc__, lambda value, facts: function(value))
        return function

    def register_with_context(
        self, function: Callable[[Value, TransformContext], Value]
    ) -> Callable[[Value, TransformContext], Value]:
        """A decorator for a transform that is told the facts too."""
        self._keep(function.__name__, function.__doc__, function)
        return function

    def _keep(self, name: str, said: str | None, function: Callable[[Value, TransformContext], Value]) -> None:
        self._by_name[name] = function
        self._described[name] = " ".join((said or "").split())

    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def describe(self, name: str) -> str:
        """One sentence saying what the transform does. Raises UnknownTransformError."""
        described = self._described.get(normalise_name(name))
        if described is None:
            raise self._unknown((name,))
        return described

    def check(self, names: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
        """The names that can be applied, in canonical form and the given order, blank ones left out. A name nobody
        bears raises UnknownTransformError when strict and is left out otherwise."""
        wanted = [name for name in map(normalise_name, names) if name]
        unknown = tuple(name for name in wanted if name not in self._by_name)
        if unknown and strict:
            raise self._unknown(unknown)
        return tuple(name for name in wanted if name in self._by_name)

    def apply(
        self, value: Value, names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
    ) -> tuple[Value, tuple[TransformChange, ...]]:
        """The value after each named transform in turn, and what each changed. Unknown names are ignored; a value
        nested too deeply for a transform to walk is left as it is."""
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
