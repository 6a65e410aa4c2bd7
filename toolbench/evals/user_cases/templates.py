"""Templated answers of simulated tools: JSON whose texts hold placeholders.

There are two placeholders, `{arguments.x}` for the argument x of the call and `{state:/path}` for the value at a JSON
Pointer of the state. Nothing is evaluated. A text that is only a placeholder becomes the value itself; elsewhere the
value is written into the text. Other braces in a text are refused when the case is read; keys of objects are literal.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from toolbench.engine.types import JsonObject

MAX_TEMPLATE_CHARACTERS = 50_000  # of all values that one answer substitutes, as JSON
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
    """Substitutes placeholders and counts the characters that they add."""

    def __init__(self, arguments: JsonObject, state: JsonObject) -> None:
        self._arguments = arguments
        self._state = state
        self._characters = 0

    def render(self, value: Any) -> Any:
        """Return the value with every placeholder substituted."""
        if isinstance(value, str):
            alone = _PLACEHOLDER.fullmatch(value)
            return self._find(alone) if alone else _PLACEHOLDER.sub(lambda match: _to_text(self._find(match)), value)
        if isinstance(value, list):
            return [self.render(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.render(item) for key, item in value.items()}
        return value

    def _find(self, match: re.Match[str]) -> Any:
        """Return a copy of the value that a placeholder stands for.

        Raises:
            TemplateError: There is no value, or the answer becomes too large.
        """
        name, pointer = match[1], match[2]
        found = self._arguments.get(name, _MISSING) if name else _resolve(self._state, pointer)
        if found is _MISSING and name:
            raise TemplateError("ARGUMENT_ERROR", f"the argument {name} is missing")
        if found is _MISSING:
            raise TemplateError("STATE_NOT_FOUND", f"nothing is at {pointer}")
        written = json.dumps(found)
        self._characters += len(written)
        if self._characters > MAX_TEMPLATE_CHARACTERS:
            raise TemplateError("TEMPLATE_TOO_LARGE", f"the answer has more than {MAX_TEMPLATE_CHARACTERS} characters")
        return json.loads(written)


def render_template(template: Any, arguments: JsonObject, state: JsonObject) -> Any:
    """Return the answer.

    Raises:
        TemplateError: A value is missing, or the answer becomes too large.
    """
    return _Renderer(arguments, state).render(template)


def find_template_problems(template: Any) -> Iterator[str]:
    """Yield each mistake in a template as a sentence."""
    yield from _iter_problems(template, 0)


def _iter_problems(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        yield f"A template is nested at most {_MAX_DEPTH} levels deep."
    elif isinstance(value, str):
        yield from _iter_text_problems(value)
    elif isinstance(value, (list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _iter_problems(item, depth + 1)


def _iter_text_problems(text: str) -> Iterator[str]:
    rest = _PLACEHOLDER.sub("", text)
    found = re.search(r"\{[^{}]*\}?|\}", rest)
    if found:
        yield (
            f"{found[0][:60]} cannot be substituted: a template has only {{arguments.x}} and {{state:/path}}. "
            "Use fixed for a text with other braces."
        )
    for pointer in filter(None, (match[2] for match in _PLACEHOLDER.finditer(text))):
        if not _is_pointer(pointer):
            yield f"{pointer[:60]} is not a JSON Pointer (/orders/17/status)."


def _is_pointer(pointer: str) -> bool:
    try:
        return bool(JsonPointer(pointer))
    except JsonPointerException:
        return False


def _resolve(state: JsonObject, pointer: str) -> Any:
    try:
        found = JsonPointer(pointer).resolve(state, _MISSING)
    except (JsonPointerException, TypeError):
        return _MISSING
    return _MISSING if isinstance(found, EndOfList) else found


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
