"""Sentences for pydantic's errors. Each sentence names the field and says what to change."""

from collections.abc import Mapping, Sequence
from typing import Any

_SOURCES = ("body", "query", "path", "header")
# Sentence by the type of pydantic's error. Other names in braces than `field` and `s` are keys of the error's context.
# `s` is the plural ending: "" for a limit of 1, else "s".
_SENTENCES: Mapping[str, str] = {
    "missing": "Add {field}: it is required.",
    "extra_forbidden": "Remove {field}: there is no such field.",
    "unknown_parameter": "Remove {names} from the query string: there is no such parameter.",
    "int_type": "Give {field} as a whole number.",
    "int_parsing": "Give {field} as a whole number.",
    "int_from_float": "Give {field} as a whole number.",
    "int_parsing_size": "Give {field} as a smaller number.",
    "float_type": "Give {field} as a number.",
    "float_parsing": "Give {field} as a number.",
    "finite_number": "Give {field} as a finite number.",
    "string_type": "Give {field} as a text.",
    "string_unicode": "Give {field} as a text of valid characters.",
    "bool_type": "Give {field} as true or false.",
    "bool_parsing": "Give {field} as true or false.",
    "list_type": "Give {field} as a list.",
    "dict_type": "Give {field} as an object.",
    "model_type": "Give {field} as an object.",
    "model_attributes_type": "Give {field} as an object.",
    "literal_error": "Give {field} as one of {expected}.",
    "greater_than_equal": "Give {field} as {ge} or more.",
    "greater_than": "Give {field} as more than {gt}.",
    "less_than_equal": "Give {field} as {le} or less.",
    "less_than": "Give {field} as less than {lt}.",
    "string_too_short": "Give {field} at least {min_length} character{s}.",
    "string_too_long": "Shorten {field} to {max_length} character{s}.",
    "too_short": "Give {field} at least {min_length} item{s}.",
    "too_long": "Give {field} at most {max_length} item{s}.",
    "string_pattern_mismatch": "Give {field} in the form {pattern}.",
}


def name_field(location: Sequence[str | int]) -> str:
    """Return the name of a field, such as `configs.0.model`.

    Args:
        location: location of the field in an error of pydantic, as Ninja returns it, such as
            ("body", "body", "configs", 0, "model").

    Returns:
        The name; for a location without a field, its source, such as "body".
    """
    parts = list(location)
    source = str(parts.pop(0)) if parts and parts[0] in _SOURCES else ""
    if (source == "body" and parts) or (source == "query" and len(parts) > 1 and parts[0] == "query"):
        parts.pop(0)  # the parameter of the operation's function
    return ".".join(map(str, parts)) or source or "body"


def describe_error(error: Mapping[str, Any]) -> str:
    """Return the sentence for one of pydantic's errors."""
    field = name_field(error["loc"])
    template = _SENTENCES.get(str(error.get("type")))
    if template is None:
        return f"Change {field}: {error.get('msg', 'the value does not fit')}."
    context = error.get("ctx", {})
    ending = "" if context.get("min_length", context.get("max_length")) == 1 else "s"
    return template.format(field=field, s=ending, **{name: _format_value(value) for name, value in context.items()})


def _format_value(value: Any) -> Any:
    """Return a number with thousands separators and without needless decimals; any other value unchanged."""
    if isinstance(value, float):
        return f"{value:,.15g}"
    return f"{value:,}" if isinstance(value, int) else value
