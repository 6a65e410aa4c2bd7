"""The named repairs in their order, and their use: one after the other, until the text is an object."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.repairs import syntax, wrappings
from toolbench.engine.strict_json import read_json
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

_REPAIRS: TransformKind[str] = TransformKind("argument")
for _repair in (
    wrappings.nested_encoding,
    wrappings.escaped_object,
    wrappings.stray_quotes,
    wrappings.doubled_object,
    wrappings.extra_closers,
    wrappings.text_around_object,
    syntax.comments,
    syntax.smart_quotes,
    syntax.single_quotes,
    syntax.python_literals,
    syntax.control_characters,
    syntax.invalid_escapes,
    syntax.unquoted_keys,
    syntax.trailing_commas,
    syntax.missing_closers,
    syntax.cut_value,
):
    _REPAIRS.register(_repair)

REPAIR_NAMES = _REPAIRS.names()
INVENTING_REPAIRS = ("cut_value",)
ENDING_REPAIRS = ("missing_closers", "cut_value")
MAX_TEXT_LENGTH = 65_536  # characters of a text that is looked at


@dataclass(frozen=True, slots=True)
class RepairedArguments:
    """An object as it was read after `repairs`, in that order, with its text. `truncated`: it broke off and its end
    was invented, so that it must not be executed."""

    value: JsonObject
    text: str
    repairs: tuple[str, ...]
    truncated: bool


def repair(text: str, names: Iterable[str], *, cut: bool = False) -> RepairedArguments | None:
    """What the named repairs make of a text, each tried only while it is no JSON object; None when they do not help.
    `cut` says that the answer was ended from outside: closing brackets are invented then as well. Never raises; time
    in proportion to the text, and one of more than MOST characters is left as it is."""
    if len(text) > MAX_TEXT_LENGTH:
        return None
    used: list[str] = []
    text = text.strip()
    value = _find_object(text)
    for name in check_repairs(names):
        if value is not None:
            break
        mended, changes = _REPAIRS.apply(text, (name,))
        if changes:
            used.append(name)
            text, value = mended, _find_object(mended)
    if value is None:
        return None
    ended = ENDING_REPAIRS if cut else INVENTING_REPAIRS
    return RepairedArguments(value, text, tuple(used), truncated=any(name in ended for name in used))


def check_repairs(names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """The known names in their order. Strict: raises UnknownTransformError for a name that nobody bears."""
    return _REPAIRS.check(names, strict=strict)


def describe_repair(name: str) -> str:
    """One sentence on what a repair does. Raises UnknownTransformError."""
    return _REPAIRS.describe(name)


def _find_object(text: str) -> JsonObject | None:
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None
