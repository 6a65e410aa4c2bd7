"""Writers of calls, tools and results, from which the text formats are composed."""

import json
from collections.abc import Callable, Sequence

from toolbench.engine.formats.types import TextCall, get_function
from toolbench.engine.types import JsonObject


def render_spaced_json(value: object) -> str:
    """Render JSON with a blank after commas and colons, as chat templates do."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_call_writer(
    name: str = "name", arguments: str = "arguments", *, before: str = "", after: str = ""
) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as `{"name": …, "arguments": {…}}`, with these keys.

    Args:
        name: the key of the tool's name.
        arguments: the key of the arguments.
        before: the text before the object.
        after: the text after the object.
    """

    def write(call: TextCall, index: int) -> str:
        return before + render_spaced_json({name: call.name, arguments: call.arguments}) + after

    return write


def tool_lines_writer(
    before: str, after: str = "", *, flat: bool = False, pair: tuple[str, str] = ("", "")
) -> Callable[[Sequence[JsonObject]], str]:
    """Return a writer of tools with one line of JSON each.

    Args:
        before: the text before all tools.
        after: the text after all tools.
        flat: write the function alone, without OpenAI's wrapper around it.
        pair: the texts before and after the JSON of each line.
    """

    def write(tools: Sequence[JsonObject]) -> str:
        definitions = [get_function(tool) for tool in tools] if flat else tools
        return before + "\n".join(pair[0] + render_spaced_json(tool) + pair[1] for tool in definitions) + after

    return write


def tool_list_writer(
    before: str, after: str = "", *, flat: bool = False, indent: int | None = None
) -> Callable[..., str]:
    """Return a writer of tools as one JSON list between two texts.

    Args:
        before: the text before the list.
        after: the text after the list.
        flat: write the functions alone, without OpenAI's wrapper around them.
        indent: blanks by which a level of the JSON is indented; None for JSON on one line.
    """

    def write(tools: Sequence[JsonObject]) -> str:
        definitions = [get_function(tool) for tool in tools] if flat else list(tools)
        return before + json.dumps(definitions, ensure_ascii=False, indent=indent) + after

    return write


def enclosed_result_writer(before: str, after: str) -> Callable[[TextCall, str, int], str]:
    """Return a writer of results between two texts.

    In both texts `{name}` and `{id}` are replaced by the name and the id of the call, and `{number}` by its position,
    from 1.
    """

    def write(call: TextCall, content: str, index: int) -> str:
        return _fill_placeholders(before, call, index) + content + _fill_placeholders(after, call, index)

    return write


def json_result_writer(**keys: str) -> Callable[[TextCall, str, int], str]:
    """Return a writer of results as JSON objects. `keys` maps each key to `name`, `id` or `content`."""

    def write(call: TextCall, content: str, index: int) -> str:
        values_by_name = {"name": call.name, "id": call.id, "content": content}
        return render_spaced_json({key: values_by_name[value_name] for key, value_name in keys.items()})

    return write


def _fill_placeholders(text: str, call: TextCall, index: int) -> str:
    return text.replace("{name}", call.name).replace("{id}", call.id).replace("{number}", str(index + 1))


def render_canonical_json(value: object) -> str:
    """Render JSON with sorted keys and without blanks."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def render_indented_json(value: object) -> str:
    """Render JSON over several lines, each indented by four more blanks, as an item of an indented list."""
    return "    " + json.dumps(value, ensure_ascii=False, allow_nan=False, indent=4).replace("\n", "\n    ")


def render_tag_value(value: object) -> str:
    """Render a tagged value: a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else render_spaced_json(value)


def render_python_call(call: TextCall, index: int) -> str:
    """Render a call as Python does: `f(a=1, b='x')`."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def tagged_call_writer(before: str, key: str, value_end: str, after: str) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as tags.

    Args:
        before: the text before the arguments; `{name}` stands for the tool's name.
        key: the text before each value; `{key}` stands for the argument's key.
        value_end: the text after each value; `{key}` stands for the argument's key.
        after: the text after the arguments.
    """

    def write(call: TextCall, index: int) -> str:
        pairs = (
            key.replace("{key}", name) + render_tag_value(value) + value_end.replace("{key}", name)
            for name, value in call.arguments.items()
        )
        return before.replace("{name}", call.name) + "".join(pairs) + after

    return write


def named_json_call_writer(before: str, between: str, after: str) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as a name and arguments in JSON.

    In `between`, `{place}` stands for the position of the call, from 0.
    """

    def write(call: TextCall, index: int) -> str:
        return before + call.name + between.replace("{place}", str(index)) + render_spaced_json(call.arguments) + after

    return write
