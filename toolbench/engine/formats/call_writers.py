"""Writers of calls, tools and results for the text formats."""

import json
from collections.abc import Callable, Sequence

from toolbench.engine.formats.types import TextCall, get_function
from toolbench.engine.types import JsonObject


def render_spaced_json(value: object) -> str:
    """Render JSON with a space after commas and colons, as chat templates do."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def build_json_call_writer(
    name_key: str = "name", arguments_key: str = "arguments", *, prefix: str = "", suffix: str = ""
) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as `{"name": …, "arguments": {…}}`, with the given keys.

    Args:
        name_key: the key of the tool's name.
        arguments_key: the key of the arguments.
        prefix: the text before the object.
        suffix: the text after the object.
    """

    def write(call: TextCall, index: int) -> str:
        return prefix + render_spaced_json({name_key: call.name, arguments_key: call.arguments}) + suffix

    return write


def build_tool_lines_writer(
    prefix: str, suffix: str = "", *, is_flat: bool = False, line_frame: tuple[str, str] = ("", "")
) -> Callable[[Sequence[JsonObject]], str]:
    """Return a writer of tools with one line of JSON each.

    Args:
        prefix: the text before all tools.
        suffix: the text after all tools.
        is_flat: whether to write the function alone, without OpenAI's wrapper around it.
        line_frame: the texts before and after the JSON of each line.
    """

    def write(tools: Sequence[JsonObject]) -> str:
        definitions = [get_function(tool) for tool in tools] if is_flat else tools
        lines = [line_frame[0] + render_spaced_json(tool) + line_frame[1] for tool in definitions]
        return prefix + "\n".join(lines) + suffix

    return write


def build_tool_list_writer(
    prefix: str, suffix: str = "", *, is_flat: bool = False, indent_spaces: int | None = None
) -> Callable[..., str]:
    """Return a writer of tools as one JSON list between two texts.

    Args:
        prefix: the text before the list.
        suffix: the text after the list.
        is_flat: whether to write the functions alone, without OpenAI's wrapper around them.
        indent_spaces: spaces of indentation for each level of the JSON; None for JSON on one line.
    """

    def write(tools: Sequence[JsonObject]) -> str:
        definitions = [get_function(tool) for tool in tools] if is_flat else list(tools)
        return prefix + json.dumps(definitions, ensure_ascii=False, indent=indent_spaces) + suffix

    return write


def build_enclosed_result_writer(prefix: str, suffix: str) -> Callable[[TextCall, str, int], str]:
    """Return a writer of results between two texts.

    In both texts `{name}` and `{id}` are replaced by the name and the id of the call, and `{number}` by its position,
    from 1.
    """

    def write(call: TextCall, content: str, index: int) -> str:
        return _fill_placeholders(prefix, call, index) + content + _fill_placeholders(suffix, call, index)

    return write


def build_json_result_writer(**keys: str) -> Callable[[TextCall, str, int], str]:
    """Return a writer of results as JSON objects. `keys` maps each of their keys to `name`, `id` or `content`."""

    def write(call: TextCall, content: str, index: int) -> str:
        values_by_name = {"name": call.name, "id": call.id, "content": content}
        return render_spaced_json({key: values_by_name[value_name] for key, value_name in keys.items()})

    return write


def _fill_placeholders(text: str, call: TextCall, index: int) -> str:
    return text.replace("{name}", call.name).replace("{id}", call.id).replace("{number}", str(index + 1))


def render_canonical_json(value: object) -> str:
    """Render JSON with sorted keys and without white space between tokens."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def render_indented_json(value: object) -> str:
    """Render JSON with an indentation of four spaces, and four more in each line, as an item of an indented list."""
    return "    " + json.dumps(value, ensure_ascii=False, allow_nan=False, indent=4).replace("\n", "\n    ")


def render_tag_value(value: object) -> str:
    """Render a value that is written between tags: a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else render_spaced_json(value)


def render_python_call(call: TextCall, index: int) -> str:
    """Render a call as Python does: `f(a=1, b='x')`."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def build_tagged_call_writer(
    prefix: str, value_prefix: str, value_suffix: str, suffix: str
) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as tags, such as `<function=f><parameter=a>1</parameter></function>`.

    Args:
        prefix: the text before the arguments; `{name}` stands for the tool's name.
        value_prefix: the text before each value; `{key}` stands for the argument's key.
        value_suffix: the text after each value; `{key}` stands for the argument's key.
        suffix: the text after the arguments.
    """

    def write(call: TextCall, index: int) -> str:
        tagged_values = (
            value_prefix.replace("{key}", key) + render_tag_value(value) + value_suffix.replace("{key}", key)
            for key, value in call.arguments.items()
        )
        return prefix.replace("{name}", call.name) + "".join(tagged_values) + suffix

    return write


def build_named_json_call_writer(prefix: str, separator: str, suffix: str) -> Callable[[TextCall, int], str]:
    """Return a writer of calls as a name and JSON arguments, with these texts around and between the two."""

    def write(call: TextCall, index: int) -> str:
        return prefix + call.name + separator + render_spaced_json(call.arguments) + suffix

    return write
