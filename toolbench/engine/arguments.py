"""Reading of a call's arguments: whatever a model sends becomes an object or a problem in plain words."""

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, count_utf8_bytes, is_too_deep, read_json, write_json
from toolbench.engine.types import JsonObject, ReadArguments

ARGUMENTS_OK = "ok"
INVALID_JSON = "invalid_json"
TOO_LARGE = "too_large"
_FENCE = "```"


def read_arguments(raw: object, max_bytes: int, *, value: object = None, standard_only: bool = False) -> ReadArguments:
    """Read the arguments of a call; arguments that cannot be read are a status, not an exception.

    None and blank text are an empty object. A text may stand in a code fence. It may be double-encoded once: a JSON
    string whose text is the JSON object.

    Args:
        raw: the arguments as the model sent them: a text, an object or anything else.
        max_bytes: the largest size that is allowed, in UTF-8 bytes.
        value: the value that `raw` was written from, if it is known; an object is not parsed again.
        standard_only: accept only the text of a JSON object.

    Returns:
        The status (`ok`, `invalid_json` or `too_large`), the size, the object and the problem.
    """
    if standard_only and not isinstance(value, dict):
        return _read_standard(raw, max_bytes)
    if raw is None:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if isinstance(raw, str) and isinstance(value, dict):
        size = count_utf8_bytes(raw)
        return _build_too_large(size, max_bytes) if size > max_bytes else ReadArguments(ARGUMENTS_OK, size, value)
    if isinstance(raw, str):
        return _read_text(_strip_fence(raw.strip()), max_bytes)
    if isinstance(raw, (dict, list)):
        return _read_value(raw, max_bytes)
    return _build_invalid(0, f"arguments must be an object, not {type(raw).__name__}")


def _read_standard(raw: object, max_bytes: int) -> ReadArguments:
    if not isinstance(raw, str):
        return _build_invalid(0, f"the standard wants the text of a JSON object, not {_get_json_type(raw)}")
    size = count_utf8_bytes(raw.strip())
    if not size:
        return _build_invalid(0, "the standard wants the text of a JSON object, not a blank one")
    if size > max_bytes:
        return _build_too_large(size, max_bytes)
    try:
        return _check_object(read_json(raw), size)
    except InvalidJsonError as error:
        return _build_invalid(size, str(error))


def measure_arguments(raw: object) -> int:
    """Return the `size` that `read_arguments` would report, without parsing the arguments."""
    if isinstance(raw, str):
        return count_utf8_bytes(_strip_fence(raw.strip()))
    return _read_value(raw, 0).size if isinstance(raw, (dict, list)) else 0


def _read_text(text: str, max_bytes: int) -> ReadArguments:
    size = count_utf8_bytes(text)
    if not text:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if size > max_bytes:
        return _build_too_large(size, max_bytes)
    try:
        value = read_json(text)
        if isinstance(value, str):
            size = count_utf8_bytes(value)  # never larger than the text around it
            value = read_json(value)
    except InvalidJsonError as error:
        return _build_invalid(size, str(error))
    return _check_object(value, size)


def _read_value(raw: JsonObject | list[object], max_bytes: int) -> ReadArguments:
    try:
        text = write_json(raw)
        if text.count("{") + text.count("[") > MAX_DEPTH and is_too_deep(raw):
            raise RecursionError
    except RecursionError:
        return _build_invalid(0, "arguments are nested too deeply")
    except (TypeError, ValueError) as error:
        return _build_invalid(0, str(error)[:200])
    size = count_utf8_bytes(text)
    return _build_too_large(size, max_bytes) if size > max_bytes else _check_object(raw, size)


def _check_object(value: object, size: int) -> ReadArguments:
    if isinstance(value, dict):
        return ReadArguments(ARGUMENTS_OK, size, value)
    return _build_invalid(size, f"arguments must be an object, not {_get_json_type(value)}")


def _get_json_type(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _strip_fence(text: str) -> str:
    """Return the inside of a code fence around the text, without the word `json`; else return the text."""
    if not (len(text) >= 2 * len(_FENCE) and text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inside = text[len(_FENCE) : -len(_FENCE)]
    return (inside[4:] if inside[:4].lower() == "json" else inside).strip()


def _build_invalid(size: int, problem: str) -> ReadArguments:
    return ReadArguments(INVALID_JSON, size, problem=problem)


def _build_too_large(size: int, max_bytes: int) -> ReadArguments:
    return ReadArguments(TOO_LARGE, size, problem=f"the arguments are {size} bytes; at most {max_bytes} are allowed")
