"""The repairs by name, and their application in the given order until the text is a JSON object."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.engine.repairs import syntax, wrappings
from toolbench.engine.strict_json import find_object
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

_REPAIRS: TransformKind[str] = TransformKind("argument")
for _repair_function in (
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
    _REPAIRS.register(_repair_function)

REPAIR_NAMES = _REPAIRS.list_names()
# Repairs after which a call counts as truncated: INVENTING_REPAIRS in any text, CLOSING_REPAIRS in a text whose end may
# be missing.
INVENTING_REPAIRS = ("cut_value",)
CLOSING_REPAIRS = ("missing_closers", "cut_value")
MAX_TEXT_LENGTH = 65_536  # characters of the longest text that is repaired


@dataclass(frozen=True, slots=True)
class RepairedArguments:
    """Arguments as an object, after repairs if the text was not a JSON object.

    Attributes:
        text: the JSON text of `value`.
        repair_names: names of the repairs that changed the text, in the order of use.
        is_truncated: whether the end of the text was missing and was invented, so that the call must not be executed.
    """

    value: JsonObject
    text: str
    repair_names: tuple[str, ...]
    is_truncated: bool


def repair_arguments(text: str, names: Iterable[str], *, is_truncated: bool = False) -> RepairedArguments | None:
    """Apply the named repairs until the text is a JSON object.

    No text raises an exception. The time is proportional to the length of the text; a text of more than MAX_TEXT_LENGTH
    characters is not repaired.

    Args:
        text: the arguments as the model wrote them.
        names: the repairs to try, in this order; unknown names are ignored.
        is_truncated: whether the end of the text may be missing, such as in an answer that was truncated at a limit.
            Closing brackets that a repair adds then count as an invented end.

    Returns:
        The arguments, with `repair_names` () if no repair was needed; None if the text is too long or the repairs do
        not help.
    """
    if len(text) > MAX_TEXT_LENGTH:
        return None
    used_names: list[str] = []
    text = text.strip()
    value = find_object(text)
    for name in check_repairs(names):
        if value is not None:
            break
        repaired_text, changes = _REPAIRS.apply(text, (name,))
        if changes:
            used_names.append(name)
            text, value = repaired_text, find_object(repaired_text)
    if value is None:
        return None
    inventing_names = CLOSING_REPAIRS if is_truncated else INVENTING_REPAIRS
    return RepairedArguments(
        value, text, tuple(used_names), is_truncated=any(name in inventing_names for name in used_names)
    )


def check_repairs(names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """Return the known names of repairs, in the given order and in the form of `normalise_name`.

    Unknown names are left out, unless `strict` is set.

    Raises:
        UnknownTransformError: a name is unknown; only if `strict` is set.
    """
    return _REPAIRS.check_names(names, strict=strict)
