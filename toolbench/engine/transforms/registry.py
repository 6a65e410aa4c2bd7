"""Named transforms by kind.

A transform is a function that returns the same object if it has nothing to do and a new one otherwise. It never changes
its argument, so that comparing the value before and after shows its changes.
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
    """Settings of a turn that some transforms need besides the value that they transform.

    Attributes:
        tools: the tools of the turn.
        text_format: name of the text format in which calls are searched for; `auto` for all formats.
        id_pattern: regular expression that call ids must match as a whole to be accepted by the endpoint; "" for none.
        guess_untyped: whether an argument between tags whose type no schema states is read as JSON if it is valid JSON;
            else it stays text.
    """

    tools: tuple[Tool, ...] = ()
    text_format: str = AUTO
    id_pattern: str = ""
    guess_untyped: bool = False


EMPTY_CONTEXT = TransformContext()


class UnknownTransformError(EngineError):
    """A name that no transform of the requested kind has."""


class TransformKind(Generic[Value]):
    """All transforms of one kind by name.

    The name of a transform is the name of its function.

    Attributes:
        kind: name of the kind, as in `TransformChange`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._transform_by_name: dict[str, Callable[[Value, TransformContext], Value]] = {}

    def register(self, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
        """Register the decorated function as a transform."""
        self._transform_by_name[function.__name__] = lambda value, context: function(value)
        return function

    def register_with_context(
        self, function: Callable[[Value, TransformContext], Value]
    ) -> Callable[[Value, TransformContext], Value]:
        """Register the decorated function as a transform that also gets the context."""
        self._transform_by_name[function.__name__] = function
        return function

    def list_names(self) -> tuple[str, ...]:
        """Return the names of all transforms in the order of registration."""
        return tuple(self._transform_by_name)

    def check_names(self, names: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
        """Return the known names, normalised by `normalise_name`, in the given order and without blank ones.

        Raises:
            UnknownTransformError: a name is unknown and `strict` is set. Otherwise unknown names are left out.
        """
        normalised_names = [name for name in map(normalise_name, names) if name]
        unknown_names = tuple(name for name in normalised_names if name not in self._transform_by_name)
        if unknown_names and strict:
            raise self._build_unknown_error(unknown_names)
        return tuple(name for name in normalised_names if name in self._transform_by_name)

    def apply(
        self, value: Value, names: Iterable[str], context: TransformContext = EMPTY_CONTEXT
    ) -> tuple[Value, tuple[TransformChange, ...]]:
        """Apply the named transforms in the given order; return the new value and all changes.

        Unknown names are ignored. A transform for which the value is nested too deeply is skipped.
        """
        changes: list[TransformChange] = []
        for name in map(normalise_name, names):
            transform = self._transform_by_name.get(name)
            if transform is None:
                continue
            try:
                changed_value = transform(value, context)
            except RecursionError:
                continue
            for path, text_before, text_after in list_changes(value, changed_value):
                changes.append(TransformChange(self.kind, name, path, text_before, text_after))
            value = changed_value
        return value, tuple(changes)

    def _build_unknown_error(self, unknown_names: tuple[str, ...]) -> UnknownTransformError:
        return UnknownTransformError(f"unknown {self.kind} transform: {', '.join(unknown_names)}")
