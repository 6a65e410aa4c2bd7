"""Reading of a call's arguments: the object, or the reason why they cannot be read."""

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, count_utf8_bytes, is_too_deep, read_json, write_json
from toolbench.engine.types import JsonObject, ReadArguments

ARGUMENTS_OK = "ok"
INVALID_JSON = "invalid_json"
TOO_LARGE = "too_large"
_CODE_FENCE = "```"


def read_arguments(
    raw_arguments: object, max_bytes: int, *, parsed_value: object = None, is_standard_only: bool = False
) -> ReadArguments:
    """Read the arguments of a call. If they cannot be read, the status of the result says so; no exception is raised.

    None and blank text are read as an empty object, unless `is_standard_only` is set. A text may be enclosed in a code
    fence. The JSON may be double-encoded once: a JSON string whose text is the JSON object.

    Args:
        raw_arguments: the arguments as the model sent them: a text, an object or anything else.
        max_bytes: the largest size that is allowed, in UTF-8 bytes.
        parsed_value: the parsed value of the text `raw_arguments`; None if that value is unknown. If `parsed_value` is
            an object, `raw_arguments` is not parsed.
        is_standard_only: accept only a JSON object as text, without code fence and double encoding. No effect if
            `parsed_value` is an object.

    Returns:
        The status (`ok`, `invalid_json` or `too_large`), the size, the object and the problem.
    """
    if is_standard_only and not isinstance(parsed_value, dict):
        return _read_standard(raw_arguments, max_bytes)
    if raw_arguments is None:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if isinstance(raw_arguments, str) and isinstance(parsed_value, dict):
        size_bytes = count_utf8_bytes(raw_arguments)
        return (
            _build_too_large(size_bytes, max_bytes)
            if size_bytes > max_bytes
            else ReadArguments(ARGUMENTS_OK, size_bytes, parsed_value)
        )
    if isinstance(raw_arguments, str):
        return _read_text(_strip_fence(raw_arguments.strip()), max_bytes)
    if isinstance(raw_arguments, (dict, list)):
        return _read_value(raw_arguments, max_bytes)
    return _build_invalid(0, f"arguments must be an object, not {type(raw_arguments).__name__}")


def _read_standard(raw_arguments: object, max_bytes: int) -> ReadArguments:
    """Read arguments as the published standards allow them: a text that is a JSON object."""
    if not isinstance(raw_arguments, str):
        return _build_invalid(0, f"the standard wants the text of a JSON object, not {_get_json_type(raw_arguments)}")
    size_bytes = count_utf8_bytes(raw_arguments.strip())
    if not size_bytes:
        return _build_invalid(0, "the standard wants the text of a JSON object, not a blank one")
    if size_bytes > max_bytes:
        return _build_too_large(size_bytes, max_bytes)
    try:
        return _check_object(read_json(raw_arguments), size_bytes)
    except InvalidJsonError as error:
        return _build_invalid(size_bytes, str(error))


def measure_arguments(raw_arguments: object) -> int:
    """Return the size of arguments in UTF-8 bytes without parsing them.

    For double-encoded arguments, the outer text is measured; `read_arguments` reports the size of the inner one.

    Returns:
        The size of a trimmed text without a code fence, or of an object or list as compact JSON. 0 for other values,
        and for objects and lists that cannot be written as JSON or are nested too deeply.
    """
    if isinstance(raw_arguments, str):
        return count_utf8_bytes(_strip_fence(raw_arguments.strip()))
    return _read_value(raw_arguments, 0).size_bytes if isinstance(raw_arguments, (dict, list)) else 0


def _read_text(text: str, max_bytes: int) -> ReadArguments:
    """Read arguments in a text without white space or code fence around it."""
    size_bytes = count_utf8_bytes(text)
    if not text:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if size_bytes > max_bytes:
        return _build_too_large(size_bytes, max_bytes)
    try:
        value = read_json(text)
        if isinstance(value, str):
            size_bytes = count_utf8_bytes(value)  # not larger than the outer text, so the limit needs no second check
            value = read_json(value)
    except InvalidJsonError as error:
        return _build_invalid(size_bytes, str(error))
    return _check_object(value, size_bytes)


def _read_value(raw_arguments: JsonObject | list[object], max_bytes: int) -> ReadArguments:
    """Read arguments that are an object or a list instead of a text; the status of a list is never `ok`."""
    try:
        text = write_json(raw_arguments)
        # Few brackets cannot nest too deeply, and counting them is faster than `is_too_deep`.
        if text.count("{") + text.count("[") > MAX_DEPTH and is_too_deep(raw_arguments):
            raise RecursionError
    except RecursionError:
        return _build_invalid(0, "arguments are nested too deeply")
    except (TypeError, ValueError) as error:
        return _build_invalid(0, str(error)[:200])
    size_bytes = count_utf8_bytes(text)
    return (
        _build_too_large(size_bytes, max_bytes) if size_bytes > max_bytes else _check_object(raw_arguments, size_bytes)
    )


def _check_object(value: object, size_bytes: int) -> ReadArguments:
    if isinstance(value, dict):
        return ReadArguments(ARGUMENTS_OK, size_bytes, value)
    return _build_invalid(size_bytes, f"arguments must be an object, not {_get_json_type(value)}")


def _get_json_type(value: object) -> str:
    """Return the JSON type of a value with its article; "null" for None and for values of other types."""
    type_names = {
        dict: "an object",
        list: "an array",
        str: "a text",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return type_names.get(type(value), "null")


def _strip_fence(text: str) -> str:
    """Return the content of the code fence around `text`, without the word `json` at its beginning.

    A text without a fence is returned unchanged.
    """
    if not (len(text) >= 2 * len(_CODE_FENCE) and text.startswith(_CODE_FENCE) and text.endswith(_CODE_FENCE)):
        return text
    content = text[len(_CODE_FENCE) : -len(_CODE_FENCE)]
    return (content[4:] if content[:4].lower() == "json" else content).strip()


def _build_invalid(size_bytes: int, problem: str) -> ReadArguments:
    return ReadArguments(INVALID_JSON, size_bytes, problem=problem)


def _build_too_large(size_bytes: int, max_bytes: int) -> ReadArguments:
    return ReadArguments(
        TOO_LARGE, size_bytes, problem=f"the arguments are {size_bytes} bytes; at most {max_bytes} are allowed"
    )
