"""Templates for answers of simulated tools: JSON values whose strings contain placeholders.

There are two placeholders: `{arguments.x}` for the argument x of the call, and `{state:/path}` for the value at a JSON
Pointer in the state. A string that is only a placeholder becomes the value itself; in a longer string the placeholder
is replaced by the value as text. Other braces are refused when the case is parsed. Keys of objects are not changed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.json_pointers import find_pointer_value, is_pointer

MAX_VALUE_CHARACTERS = 50_000  # JSON length of all values that replace placeholders in one answer
_PLACEHOLDER = re.compile(r"\{(?:arguments\.([A-Za-z_][A-Za-z0-9_-]*)|state:(/[^{}]*))\}", re.ASCII)
_MAX_DEPTH = 60
_MISSING = object()


class TemplateError(Exception):
    """An answer that cannot be rendered; the message is addressed to the model.

    Attributes:
        code: The error code of the refused call.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class _Renderer:
    """Renderer of one answer; it counts the characters of the values that replace placeholders."""

    def __init__(self, arguments: JsonObject, state: JsonObject) -> None:
        self._arguments = arguments
        self._state = state
        self._character_count = 0

    def render(self, value: Any) -> Any:
        """Return the value with every placeholder replaced.

        Raises:
            TemplateError: A placeholder has no value, or the values of the placeholders are too long.
        """
        if isinstance(value, str):
            only_placeholder = _PLACEHOLDER.fullmatch(value)
            if only_placeholder:
                return self._copy_value(only_placeholder)
            return _PLACEHOLDER.sub(lambda match: _render_text(self._copy_value(match)), value)
        if isinstance(value, list):
            return [self.render(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.render(item) for key, item in value.items()}
        return value

    def _copy_value(self, match: re.Match[str]) -> Any:
        """Return a copy of the value that a placeholder stands for, and count its characters.

        Raises:
            TemplateError: There is no value, or the values so far are too long.
        """
        name, pointer = match[1], match[2]
        value = self._arguments.get(name, _MISSING) if name else find_pointer_value(self._state, pointer, _MISSING)
        if value is _MISSING and name:
            raise TemplateError("ARGUMENT_ERROR", f"the argument {name} is missing")
        if value is _MISSING:
            raise TemplateError("STATE_NOT_FOUND", f"nothing is at {pointer}")
        json_text = json.dumps(value)
        self._character_count += len(json_text)
        if self._character_count > MAX_VALUE_CHARACTERS:
            message = f"the values in the answer have more than {MAX_VALUE_CHARACTERS} characters"
            raise TemplateError("TEMPLATE_TOO_LARGE", message)
        return json.loads(json_text)


def render_template(template: Any, arguments: JsonObject, state: JsonObject) -> Any:
    """Return the answer that a template gives for a call.

    Args:
        template: The template, any JSON value.
        arguments: The arguments of the call.
        state: The state after the call.

    Raises:
        TemplateError: A placeholder has no value, or their values have more than MAX_VALUE_CHARACTERS characters.
    """
    return _Renderer(arguments, state).render(template)


def iter_template_problems(template: Any, depth: int = 0) -> Iterator[str]:
    """Yield each mistake in a template as a sentence.

    Args:
        template: The template, any JSON value.
        depth: The number of values that contain this one.
    """
    if depth > _MAX_DEPTH:
        yield f"A template may be nested at most {_MAX_DEPTH} levels deep."
    elif isinstance(template, str):
        yield from _iter_text_problems(template)
    elif isinstance(template, (list, Mapping)):
        for item in template.values() if isinstance(template, Mapping) else template:
            yield from iter_template_problems(item, depth + 1)


def _iter_text_problems(text: str) -> Iterator[str]:
    rest = _PLACEHOLDER.sub("", text)
    other_brace = re.search(r"\{[^{}]*\}?|\}", rest)
    if other_brace:
        yield (
            f"{other_brace[0][:60]} cannot be substituted: a template has only {{arguments.x}} and {{state:/path}}. "
            "Use fixed for a text with other braces."
        )
    for pointer in filter(None, (match[2] for match in _PLACEHOLDER.finditer(text))):
        if not is_pointer(pointer):
            yield f"{pointer[:60]} is not a JSON Pointer such as /orders/17/status."


def _render_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
