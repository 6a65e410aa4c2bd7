"""Strict lookup of template variables.

Django treats an unknown name as empty, also in `if`, `for` and `with`, so no test would notice a misspelt name.
"""

import inspect
from typing import Any

from django.template.base import Variable
from django.template.context import BaseContext

UNKNOWN_NAMES: list[str] = []  # a test empties it; needed since operators of `if` catch every exception


class UnknownTemplateNameError(AssertionError):
    """A template names something that does not exist, or a callable that cannot be called without arguments.

    It is no `VariableDoesNotExist`, so filters do not treat it as empty. Each is also added to `UNKNOWN_NAMES`.
    """

    def __init__(self, variable: Variable, reason: str) -> None:
        sentence = f"{{{{ {variable.var} }}}}: {reason}"
        UNKNOWN_NAMES.append(sentence)
        super().__init__(sentence)


def resolve_strict(variable: Variable, context: BaseContext) -> Any:
    """Look up a variable as Django does, but refuse unknown names.

    A lookup in None gives None: the name is known, its value is absent. A key that a plain dict lacks gives None too:
    such dicts are stored JSON, whose keys depend on what was received.

    Raises:
        UnknownTemplateNameError: the context, or an object in it, has no such name; or it is a callable with
            required arguments.
    """
    current: Any = context
    for name in variable.lookups or ():
        current = _call_value(_look_up(current, name, variable), variable)
        if current is None:
            return None
    return current


def _look_up(current: Any, name: str, variable: Variable) -> Any:
    if isinstance(current, BaseContext):
        if name in current:
            return current[name]
        raise UnknownTemplateNameError(variable, f"the context has no name {name!r}")
    try:
        return current[name]
    except (TypeError, AttributeError, KeyError, ValueError, IndexError):
        pass
    if hasattr(current, name):
        return getattr(current, name)
    if isinstance(current, dict):
        return None
    try:
        return current[int(name)]
    except IndexError:
        return None
    except (ValueError, KeyError, TypeError):
        raise UnknownTemplateNameError(variable, f"{type(current).__name__} has no name {name!r}") from None


def _call_value(value: Any, variable: Variable) -> Any:
    if not callable(value) or getattr(value, "do_not_call_in_templates", False):
        return value
    try:
        inspect.signature(value).bind()
    except ValueError:  # a built-in method without a signature
        pass
    except TypeError:
        raise UnknownTemplateNameError(variable, "a callable that needs arguments") from None
    return value()
