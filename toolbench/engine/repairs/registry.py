"""The repairs in their order, and their use one after the other until the text is an object."""

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
    """An object with its text and the repairs that made it readable.

    Attributes:
        repairs: names in the order of use.
        truncated: whether the text broke off and its end was invented, so that it must not be executed.
    """

    value: JsonObject
    text: str
    repairs: tuple[str, ...]
    truncated: bool


def repair(text: str, names: Iterable[str], *, cut: bool = False) -> RepairedArguments | None:
    """Apply the named repairs until the text is a JSON object; None if they do not help. No text raises an exception.

    The time is proportional to the length of the text; a text of more than MAX_TEXT_LENGTH characters is not repaired.

    Args:
        text: the text.
        names: the repairs to try.
        cut: whether the answer was ended from outside; closing brackets are then invented too.
    """
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
    """Return the known names in their order.

    Raises:
        UnknownTransformError: a name is unknown; only if `strict` is set.
    """
    return _REPAIRS.check(names, strict=strict)


def describe_repair(name: str) -> str:
    """Return in one sentence what a repair does.

    Raises:
        UnknownTransformError: there is no such repair.
    """
    return _REPAIRS.describe(name)


def _find_object(text: str) -> JsonObject | None:
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None
