"""Writing calls, tools and results: the pieces that families put together."""

import json
from collections.abc import Callable, Sequence

from toolbench.engine.formats.types import TextCall, get_function
from toolbench.engine.types import JsonObject


def render_spaced_json(value: object) -> str:
    """JSON with a blank behind commas and colons, as chat templates write it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_call_writer(
    name: str = "name", arguments: str = "arguments", *, before: str = "", after: str = ""
) -> Callable[[TextCall, int], str]:
    """Writes `{"name": …, "arguments": {…}}` under the given keys."""

    def write(call: TextCall, place: int) -> str:
        return before + render_spaced_json({name: call.name, arguments: call.arguments}) + after

    return write


def tool_lines_writer(
    before: str, after: str = "", *, flat: bool = False, each: tuple[str, str] = ("", "")
) -> Callable[[Sequence[JsonObject]], str]:
    """Tools as one line of JSON each, between two texts, and every line between two more; `flat` leaves OpenAI's
    wrapping out."""

    def write(tools: Sequence[JsonObject]) -> str:
        listed = [get_function(tool) for tool in tools] if flat else tools
        return before + "\n".join(each[0] + render_spaced_json(tool) + each[1] for tool in listed) + after

    return write


def tool_list_writer(
    before: str, after: str = "", *, flat: bool = False, indent: int | None = None
) -> Callable[..., str]:
    """Tools as one JSON list; `flat` leaves OpenAI's wrapping out."""

    def write(tools: Sequence[JsonObject]) -> str:
        listed = [get_function(tool) for tool in tools] if flat else list(tools)
        return before + json.dumps(listed, ensure_ascii=False, indent=indent) + after

    return write


def enclosed_result_writer(before: str, after: str) -> Callable[[TextCall, str, int], str]:
    """A result's text between two texts, in which `{name}` and `{id}` stand for the call's and `{number}` for its place
    from 1."""

    def write(call: TextCall, content: str, place: int) -> str:
        return _fill_placeholders(before, call, place) + content + _fill_placeholders(after, call, place)

    return write


def json_result_writer(**keys: str) -> Callable[[TextCall, str, int], str]:
    """A result as a JSON object: each key with `name`, `id` or `content`."""

    def write(call: TextCall, content: str, place: int) -> str:
        facts = {"name": call.name, "id": call.id, "content": content}
        return render_spaced_json({key: facts[fact] for key, fact in keys.items()})

    return write


def _fill_placeholders(text: str, call: TextCall, place: int) -> str:
    return text.replace("{name}", call.name).replace("{id}", call.id).replace("{number}", str(place + 1))


def render_canonical_json(value: object) -> str:
    """JSON with its keys in order and no blanks."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def render_indented_json(value: object) -> str:
    """JSON over several lines, all of them four blanks in, as an item of a list stands in such."""
    return "    " + json.dumps(value, ensure_ascii=False, allow_nan=False, indent=4).replace("\n", "\n    ")


def render_tag_value(value: object) -> str:
    """A tagged value: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else render_spaced_json(value)


def render_python_call(call: TextCall, place: int) -> str:
    """`f(a=1, b='x')`."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def tagged_call_writer(before: str, key: str, value_end: str, after: str) -> Callable[[TextCall, int], str]:
    """A call as tags; `{name}` stands for the tool in `before`, `{key}` for the key in `key`, behind which the value
    follows, and in `value_end`."""

    def write(call: TextCall, place: int) -> str:
        pairs = (
            key.replace("{key}", name) + render_tag_value(value) + value_end.replace("{key}", name)
            for name, value in call.arguments.items()
        )
        return before.replace("{name}", call.name) + "".join(pairs) + after

    return write


def named_json_call_writer(before: str, between: str, after: str) -> Callable[[TextCall, int], str]:
    """A name, then its arguments as JSON; `{place}` stands for the call's place from 0."""

    def write(call: TextCall, place: int) -> str:
        return before + call.name + between.replace("{place}", str(place)) + render_spaced_json(call.arguments) + after

    return write
