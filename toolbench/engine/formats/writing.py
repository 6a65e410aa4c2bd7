"""Writing calls, tools and results: the pieces that families put together."""

import json
from collections.abc import Callable, Sequence

from toolbench.engine.formats.values import TextCall, function_of
from toolbench.engine.json_text import write_json
from toolbench.engine.messages import JsonObject


def spaced_json(value: object) -> str:
    """JSON with a blank behind commas and colons, as chat templates write it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_call(
    name: str = "name", arguments: str = "arguments", *, before: str = "", after: str = ""
) -> Callable[[TextCall, int], str]:
    """Writes `{"name": …, "arguments": {…}}` under the given keys."""

    def write(call: TextCall, place: int) -> str:
        return before + spaced_json({name: call.name, arguments: call.arguments}) + after

    return write


def tool_lines(before: str, after: str = "") -> Callable[[Sequence[JsonObject]], str]:
    """Tools as one line of compact JSON each, in OpenAI's wrapping, between two texts."""

    def write(tools: Sequence[JsonObject]) -> str:
        return before + "\n".join(spaced_json(tool) for tool in tools) + after

    return write


def tool_list(before: str, after: str = "", *, flat: bool = False, indent: int | None = None) -> Callable[..., str]:
    """Tools as one JSON list; `flat` leaves OpenAI's wrapping out."""

    def write(tools: Sequence[JsonObject]) -> str:
        listed = [function_of(tool) for tool in tools] if flat else list(tools)
        return before + json.dumps(listed, ensure_ascii=False, indent=indent) + after

    return write


def enclosed(before: str, after: str) -> Callable[[TextCall, str], str]:
    """A result's text between two texts, in which `{name}` and `{id}` stand for the call's."""

    def write(call: TextCall, content: str) -> str:
        return _filled(before, call) + content + _filled(after, call)

    return write


def as_json(**keys: str) -> Callable[[TextCall, str], str]:
    """A result as a JSON object: each key with `name`, `id` or `content`."""

    def write(call: TextCall, content: str) -> str:
        facts = {"name": call.name, "id": call.id, "content": content}
        return write_json({key: facts[fact] for key, fact in keys.items()})

    return write


def _filled(text: str, call: TextCall) -> str:
    return text.replace("{name}", call.name).replace("{id}", call.id)


def spelled(value: object) -> str:
    """A tagged value: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else spaced_json(value)


def python_call(call: TextCall, place: int) -> str:
    """`f(a=1, b='x')`."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def tagged_call(before: str, key: str, value_end: str, after: str) -> Callable[[TextCall, int], str]:
    """A call as tags; `{name}` stands for the tool in `before`, `{key}` for the key in `key`, behind which the value
    follows, and in `value_end`."""

    def write(call: TextCall, place: int) -> str:
        pairs = (
            key.replace("{key}", name) + spelled(value) + value_end.replace("{key}", name)
            for name, value in call.arguments.items()
        )
        return before.replace("{name}", call.name) + "".join(pairs) + after

    return write


def named_json_call(before: str, between: str, after: str) -> Callable[[TextCall, int], str]:
    """A name, then its arguments as JSON; `{place}` stands for the call's place from 0."""

    def write(call: TextCall, place: int) -> str:
        return before + call.name + between.replace("{place}", str(place)) + spaced_json(call.arguments) + after

    return write
